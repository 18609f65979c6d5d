-- grain: one row per event and matcher
-- reads: compared_events (complete, replicate, n_before, n_after, segment, event_label)
-- params: none
-- caution: event_label is the text of the event's values; given numbers know no articles, so these have the empty text
SELECT
  segment,
  complete,
  replicate,
  n_before,
  n_after,
  event_label AS event_stratum,
  '' AS article_stratum
FROM compared_events
