-- grain: one row, if the weight is 0 in every row
-- reads: predictions_read (passes_where, weight)
-- params: none
-- caution: weights are not negative
-- message: input {input}: column {names[weight]!r} is 0 in every row
-- remedy: Weights say how much a row counts: some must be above 0.
SELECT
  max(weight) AS most
FROM predictions_read
WHERE passes_where
HAVING max(weight) = 0
