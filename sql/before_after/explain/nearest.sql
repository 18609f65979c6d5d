-- grain: one row per compared pair of the window
-- reads: explained_rows (segment, score, lag)
-- params: $threshold, $lowest_score, $before_start, $before_end, $after_start, $after_end
-- caution: in the order of the distance from the threshold, on either side of it
SELECT
  segment,
  score,
  lag / CAST('3600000000' AS DOUBLE) AS lag_hours,
  score >= $lowest_score AS is_match
FROM explained_rows
WHERE (lag >= $before_start AND lag < $before_end) OR (lag >= $after_start AND lag <= $after_end)
ORDER BY abs(score - $threshold), score DESC, segment, lag
