-- grain: no row: without intervals every row is in replicate 0
-- reads: units (cluster_key)
-- params: none
-- caution: stands for replicates
SELECT
  cluster_key AS cluster,
  CAST(0 AS SMALLINT) AS replicate
FROM units
WHERE FALSE
