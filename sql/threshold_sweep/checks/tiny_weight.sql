-- grain: one row with the number of weights of which 15 decimals keep too little; none if there is no such weight
-- reads: predictions_read (passes_where, weight)
-- params: $least
-- caution: a weight of 0 is no fault
-- message: input {input}: column {names[weight]!r} is above 0 but below {least:g} in {rows}
-- remedy: Multiply all weights by one number, such as 1e6: only their ratios matter.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM predictions_read
WHERE passes_where AND weight > 0 AND weight < $least
HAVING count(*) > 0
