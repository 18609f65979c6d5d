-- grain: one row per unit and system
-- reads: units (unit, system, segment)
-- params: none
-- caution: segment stands for the grouping columns and the counts and metrics that are compared
SELECT
  unit,
  system,
  segment
FROM units
