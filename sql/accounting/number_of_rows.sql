-- grain: one row
-- reads: input_read (kept)
-- params: none
-- caution: rows that where keeps, whether they take part or not
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE kept
