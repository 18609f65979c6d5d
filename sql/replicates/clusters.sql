-- grain: one row per cluster
-- reads: input_read (kept, value)
-- params: none
-- caution: a row without a cluster is a fault, which a check finds
SELECT DISTINCT
  value AS cluster
FROM input_read
WHERE kept AND value IS NOT NULL
