-- grain: one row per event that takes part
-- reads: pairs_of_events (event_id, score, lag_hours), events (event_id, complete)
-- params: $lowest_score, $before_start, $before_end, $after_start, $after_end
-- caution: events without any match keep their row; $lowest_score is the lowest score that is retrieved
SELECT
  events.event_id,
  CAST(coalesce(matches.m_before, 0) AS BIGINT) AS m_before,
  CAST(coalesce(matches.m_after, 0) AS BIGINT) AS m_after
FROM events
LEFT JOIN (
  SELECT
    event_id,
    count(*) FILTER (WHERE lag_hours >= $before_start AND lag_hours < $before_end) AS m_before,
    count(*) FILTER (WHERE lag_hours >= $after_start AND lag_hours <= $after_end) AS m_after
  FROM pairs_of_events
  WHERE score >= $lowest_score
  GROUP BY event_id
) AS matches ON events.event_id = matches.event_id
WHERE events.complete
