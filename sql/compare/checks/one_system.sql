-- grain: one row with the system, if there is only one
-- reads: units_read (passes_where, system)
-- params: none
-- caution: a single system cannot be compared with anything; NULL is a system where nothing is paired
-- message: input {input}: column {names[system]!r} has one value only: {system!r}
-- remedy: Two systems or more are needed.
SELECT
  min(system) AS system
FROM units_read
WHERE passes_where
HAVING count(DISTINCT system) + max(CASE WHEN system IS NULL THEN 1 ELSE 0 END) = 1
