-- grain: one row per event, and per cluster of it
-- reads: rows_read (passes_where, event_id, unit_cluster)
-- params: none
-- caution: rows_read is the input that has the clusters: events, or pairs; an event in several is a fault that a check
--   finds
SELECT DISTINCT
  event_id,
  unit_cluster AS cluster
FROM rows_read
WHERE passes_where AND event_id IS NOT NULL
