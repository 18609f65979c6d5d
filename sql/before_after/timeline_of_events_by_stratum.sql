-- grain: one row per event that takes part
-- reads: events (complete, replicate, event_time, segment, event_label)
-- params: none
-- caution: event_label is the text of the event's values
SELECT
  segment,
  replicate,
  event_time,
  event_label AS event_stratum
FROM events
WHERE complete
