-- grain: one row per event and matcher
-- reads: events (complete, replicate, segment), matchers (matcher, segment)
-- params: none
-- caution: each matcher was compared with every event; without any matcher an event stands once, with NULL
SELECT
  events.segment,
  events.complete,
  events.replicate,
  matchers.segment,
  matchers.matcher
FROM events
LEFT JOIN matchers ON TRUE
