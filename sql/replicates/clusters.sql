-- grain: one row per cluster
-- reads: input_read (passes_where, value)
-- params: none
-- caution: a row without a cluster is a fault, which a check finds
SELECT DISTINCT
  value AS cluster
FROM input_read
WHERE passes_where AND value IS NOT NULL
