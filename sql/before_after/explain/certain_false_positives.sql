-- grain: one row per match before its event
-- reads: explained_rows (segment, score, lag_hours)
-- params: $lowest_score, $before_start, $before_end
-- caution: an article cannot cover an event that has not happened; segment stands for the keys and the grouping columns
SELECT
  segment,
  score,
  lag_hours
FROM explained_rows
WHERE score >= $lowest_score AND lag_hours >= $before_start AND lag_hours < $before_end
ORDER BY score DESC, lag_hours, segment
