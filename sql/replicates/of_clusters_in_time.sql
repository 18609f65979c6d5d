-- grain: one row per cluster
-- reads: clusters (cluster, in_order)
-- params: $own_limit, $blocks
-- caution: replicates are in the order of the clusters; with more clusters than $own_limit each is a block of clusters
--   that follow each other, all of one length but for one
WITH placed AS (
  SELECT
    cluster,
    row_number() OVER (ORDER BY in_order, cluster) AS place,
    ntile($blocks) OVER (ORDER BY in_order, cluster) AS block,
    count(*) OVER () AS n_clusters
  FROM clusters
)
SELECT cluster, CAST(CASE WHEN n_clusters <= $own_limit THEN place ELSE block END - 1 AS SMALLINT) AS replicate
FROM placed
