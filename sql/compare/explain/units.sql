-- grain: one row per unit and system
-- reads: explained_rows (segment)
-- params: none
-- caution: segment stands for the unit, the system, the grouping columns and what is compared
SELECT
  segment
FROM explained_rows
ORDER BY segment
