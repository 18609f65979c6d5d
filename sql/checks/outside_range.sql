-- grain: one row, how many rows have a value outside its range; none where no row has
-- reads: input_read (passes_where, value)
-- params: $lowest, $highest
-- caution: both limits lie in the range; NULL is not outside
-- message: input {input}: column {names[value]!r} is outside {lowest:g} to {highest:g} in {rows}
-- remedy: Correct these rows, or leave them out with where.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND (value < $lowest OR value > $highest)
HAVING count(*) > 0
