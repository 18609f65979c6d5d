-- grain: one row, how many rows end before they start; none where no row does
-- reads: input_read (passes_where, start, end)
-- params: none
-- caution: an incident of no length is a point
-- message: input {input}: {names[end]!r} is before {names[start]!r} in {rows}
-- remedy: Exchange the two, or leave the rows out with where; what has no length ends where it starts.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND "end" < start
HAVING count(*) > 0
