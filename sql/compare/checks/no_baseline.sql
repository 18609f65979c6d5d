-- grain: one row with the lowest and the highest system, if none of them is the baseline
-- reads: units_read (passes_where, system)
-- params: $baseline
-- caution: systems are numbers or text; the baseline is text as people write it
-- message: input {input}: column {names[system]!r} has no value {baseline!r}, the baseline; its values are from
--   {lowest!r} to {highest!r}
-- remedy: Give one of the systems as baseline, or leave it out to compare every pair.
SELECT
  min(system) AS lowest,
  max(system) AS highest
FROM units_read
WHERE passes_where
HAVING count(*) > 0 AND max(CASE WHEN CAST(system AS VARCHAR) = $baseline THEN 1 ELSE 0 END) = 0
