-- grain: one row per unit of an input of units
-- reads: units_read (passes_where, complete, segment)
-- params: none
-- caution: as of_input.sql, without replicates: all units are in replicate 0
SELECT
  units_read.segment,
  units_read.complete AS complete,
  CAST(0 AS SMALLINT) AS replicate
FROM units_read
WHERE units_read.passes_where
