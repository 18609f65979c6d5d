-- grain: one row per event that takes part
-- reads: used_pairs (event_id, score, lag), events (event_id, complete)
-- params: $lowest_score, $reference_score, $before_start, $before_end, $after_start, $after_end
-- caution: events without any match keep their row; the scores are the lowest that are retrieved at the chosen threshold
--   and at the recall reference
SELECT
  events.event_id,
  coalesce(matches.m_before, 0) AS m_before,
  coalesce(matches.m_after, 0) AS m_after,
  coalesce(matches.m_before_reference, 0) AS m_before_reference,
  coalesce(matches.m_after_reference, 0) AS m_after_reference
FROM events
LEFT JOIN (
  SELECT
    event_id,
    CAST(count_if(is_before AND score >= $lowest_score) AS BIGINT) AS m_before,
    CAST(count_if(is_after AND score >= $lowest_score) AS BIGINT) AS m_after,
    CAST(count_if(is_before AND score >= $reference_score) AS BIGINT) AS m_before_reference,
    CAST(count_if(is_after AND score >= $reference_score) AS BIGINT) AS m_after_reference
  FROM (
    SELECT
      event_id,
      score,
      lag >= $before_start AND lag < $before_end AS is_before,
      lag >= $after_start AND lag <= $after_end AS is_after
    FROM used_pairs
    WHERE score >= $lowest_score OR score >= $reference_score
  ) AS retrieved
  GROUP BY event_id
) AS matches ON events.event_id = matches.event_id
WHERE events.complete
