-- grain: one row per match before its event
-- reads: explained_rows (segment, score, lag)
-- params: $lowest_score, $before_start, $before_end
-- caution: an article cannot cover an event that has not happened; segment stands for the keys and the grouping columns
SELECT
  segment,
  score,
  lag / CAST('3600000000' AS DOUBLE) AS lag_hours
FROM explained_rows
WHERE score >= $lowest_score AND lag >= $before_start AND lag < $before_end
ORDER BY score DESC, lag, segment
