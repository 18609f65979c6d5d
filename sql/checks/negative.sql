-- grain: one row, how many rows have a count below zero; none where no row has
-- reads: input_read (passes_where, value)
-- params: none
-- caution: NULL is no negative number
-- message: input {input}: column {names[value]!r} is negative in {rows}
-- remedy: It is a number of rows or pairs, so it cannot be below 0.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND value < 0
HAVING count(*) > 0
