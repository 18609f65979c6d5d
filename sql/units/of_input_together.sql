-- grain: one row per unit of an input of units
-- reads: units_read (kept, segment)
-- params: none
-- caution: as of_input.sql, without replicates: all units are in replicate 0
SELECT
  units_read.segment,
  TRUE AS complete,
  CAST(0 AS SMALLINT) AS replicate
FROM units_read
WHERE units_read.kept
