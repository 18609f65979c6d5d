-- grain: one row per cluster
-- reads: units_read (kept, key)
-- params: none
-- caution: key is the column whose values are independent
SELECT DISTINCT
  key AS cluster
FROM units_read
WHERE kept AND key IS NOT NULL
