-- grain: no row: without intervals every row is in replicate 0
-- reads: clusters (cluster)
-- params: none
-- caution: stands for replicates
SELECT
  cluster,
  CAST(0 AS SMALLINT) AS replicate
FROM clusters
WHERE FALSE
