-- grain: one row per cluster
-- reads: input_read (passes_where, value, order_value)
-- params: none
-- caution: as clusters.sql, for clusters with an order; a cluster whose rows differ in it stands where the first does
SELECT
  value AS cluster,
  min(order_value) AS in_order
FROM input_read
WHERE passes_where AND value IS NOT NULL
GROUP BY value
