-- grain: one row per cluster
-- reads: clusters (cluster)
-- params: none
-- caution: stands for of_clusters.sql where no intervals are wanted: all clusters are in one replicate
SELECT
  cluster,
  CAST(0 AS SMALLINT) AS replicate
FROM clusters
