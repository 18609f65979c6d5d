-- grain: one row per event with a match
-- reads: explained_rows (event_id, score, lag)
-- params: $lowest_score, $reference_score, $before_start, $before_end, $after_start, $after_end
-- caution: events without a match have no row, neither at the threshold nor at the recall reference
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
  FROM explained_rows
  WHERE score >= $lowest_score OR score >= $reference_score
) AS retrieved
GROUP BY event_id
ORDER BY event_id
