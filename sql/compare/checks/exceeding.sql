-- grain: one row with the number of units that have more true positives than a total; none if there is no such unit
-- reads: units_read (passes_where, tp, total)
-- params: none
-- caution: total is the number of predicted or of true items, which true positives are part of
-- message: input {input}: {names[tp]} exceeds {names[total]} in {rows}
-- remedy: True positives are part of both totals.
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM units_read
WHERE passes_where AND tp > total
HAVING count(*) > 0
