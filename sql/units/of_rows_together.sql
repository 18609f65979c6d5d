-- grain: one row per unit that rows name
-- reads: rows_read (passes_where, unit)
-- params: none
-- caution: as of_rows.sql, without replicates: all units are in replicate 0
SELECT DISTINCT
  rows_read.unit,
  TRUE AS complete,
  CAST(0 AS SMALLINT) AS replicate
FROM rows_read
WHERE rows_read.passes_where AND rows_read.unit IS NOT NULL
