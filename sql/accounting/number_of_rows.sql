-- grain: one row
-- reads: input_read (passes_where)
-- params: none
-- caution: rows that pass where, whether they take part or not
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where
