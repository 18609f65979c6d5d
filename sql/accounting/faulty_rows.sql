-- grain: one row, the rows of an input that satisfy a condition
-- reads: input_read (passes_where, is_faulty)
-- params: none
-- caution: is_faulty stands for the condition of rows that must not be left out
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND is_faulty
