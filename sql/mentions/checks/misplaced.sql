-- grain: one row with the number of mentions that cannot be places in a text; none if there is no such mention
-- reads: input_read (passes_where, start, end)
-- params: $farthest
-- caution: places that are not known are no fault here
-- message: input {input}: {names[end]!r} is before {names[start]!r}, or one is beyond ±{farthest:,}, in {rows}
-- remedy: end is the character after the last one; correct these rows, or leave them out with where.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM input_read
WHERE passes_where AND (start < -$farthest OR "end" < start OR "end" > $farthest)
HAVING count(*) > 0
