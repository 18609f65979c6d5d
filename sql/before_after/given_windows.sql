-- grain: one row per event
-- reads: events (event_id, event_time, complete), archive (first_time, last_time)
-- params: none
-- caution: times in microseconds, NULL in the archive where there are no articles
SELECT
  events.event_id,
  events.event_time,
  events.complete,
  archive.first_time,
  archive.last_time
FROM events
CROSS JOIN archive
ORDER BY events.event_id
