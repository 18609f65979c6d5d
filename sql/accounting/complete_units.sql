-- grain: one row
-- reads: units (complete)
-- params: none
-- caution: units whose window runs beyond the data take no part
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM units
WHERE complete
