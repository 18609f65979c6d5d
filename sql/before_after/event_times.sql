-- grain: one row per event
-- reads: events_read (passes_where, event_id, event_time)
-- params: none
-- caution: an event that is listed twice is a fault, which a check finds; until then it has its earliest time
SELECT
  event_id,
  min(event_time) AS event_time
FROM events_read
WHERE passes_where
GROUP BY event_id
