-- grain: one row per event with a match
-- reads: explained_rows (event_id, score, lag_hours)
-- params: $lowest_score, $before_start, $before_end, $after_start, $after_end
-- caution: events without a match have no row
SELECT
  event_id,
  CAST(count_if(lag_hours >= $before_start AND lag_hours < $before_end) AS BIGINT) AS m_before,
  CAST(count_if(lag_hours >= $after_start AND lag_hours <= $after_end) AS BIGINT) AS m_after
FROM explained_rows
WHERE score >= $lowest_score
GROUP BY event_id
ORDER BY event_id
