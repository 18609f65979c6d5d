-- grain: one row, how many rows lack a required value; none where all have it
-- reads: input_read (passes_where, value)
-- params: none
-- caution: a value that is not finite, or no flag, is NULL in the relation
-- message: input {input}: column {names[value]!r} is {missing} in {rows}
-- remedy: It is required in every row: fill it in, or leave the rows out with where.{or_map}
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND value IS NULL
HAVING count(*) > 0
