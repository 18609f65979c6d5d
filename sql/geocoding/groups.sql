-- grain: one row per group
-- reads: toponyms (segment)
-- params: none
-- caution: also groups that have spurious predictions only
SELECT DISTINCT
  segment
FROM toponyms
