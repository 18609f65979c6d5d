-- grain: one row with the system, if there is only one
-- reads: units_read (passes_where, system)
-- params: none
-- caution: a single system cannot be compared with anything
-- message: input {input}: column {names[system]!r} has one value only: {system!r}
-- remedy: Two systems or more are needed on the same units.
SELECT
  min(system) AS system
FROM units_read
WHERE passes_where
HAVING count(DISTINCT system) = 1
