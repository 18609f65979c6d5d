-- grain: one row per cluster
-- reads: clusters (cluster)
-- params: $own_limit, $hash_groups
-- caution: a cluster keeps its replicate whatever the order of rows and files; with more clusters than $own_limit the
--   replicate is a hash of the cluster, so that no table of all clusters has to be sorted or shipped
WITH digests AS (
  SELECT
    cluster,
    md5(CAST(cluster AS VARCHAR)) AS digest,
    count(*) OVER () AS n_clusters
  FROM clusters
),
digits AS (
  SELECT
    cluster,
    n_clusters,
    instr('0123456789abcdef', substr(digest, 1, 1)) - 1 AS digit_1,
    instr('0123456789abcdef', substr(digest, 2, 1)) - 1 AS digit_2,
    instr('0123456789abcdef', substr(digest, 3, 1)) - 1 AS digit_3,
    instr('0123456789abcdef', substr(digest, 4, 1)) - 1 AS digit_4
  FROM digests
)
SELECT
  cluster,
  CAST(
    CASE
      WHEN n_clusters <= $own_limit THEN row_number() OVER (ORDER BY cluster) - 1
      ELSE (((digit_1 * 16 + digit_2) * 16 + digit_3) * 16 + digit_4) % $hash_groups
    END
    AS SMALLINT
  ) AS replicate
FROM digits
