-- grain: one row per unit of an input of units
-- reads: units_read (passes_where, complete, unit_cluster, segment), replicates (cluster, replicate)
-- params: none
-- caution: segment stands for the key, what counting needs of a unit, and its grouping columns
SELECT
  units_read.segment,
  units_read.complete AS complete,
  replicates.replicate
FROM units_read
INNER JOIN replicates ON units_read.unit_cluster = replicates.cluster
WHERE units_read.passes_where
