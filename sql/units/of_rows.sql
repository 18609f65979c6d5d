-- grain: one row per unit that rows name, and per cluster of it
-- reads: rows_read (passes_where, unit, unit_cluster), replicates (cluster, replicate)
-- params: none
-- caution: a unit in several clusters has several rows, which a check finds
SELECT DISTINCT
  rows_read.unit,
  TRUE AS complete,
  replicates.replicate
FROM rows_read
INNER JOIN replicates ON rows_read.unit_cluster = replicates.cluster
WHERE rows_read.passes_where AND rows_read.unit IS NOT NULL
