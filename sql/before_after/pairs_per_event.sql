-- grain: one row per event with pairs
-- reads: used_pairs (event_id, score, lag)
-- params: $before_start, $before_end, $after_start, $after_end
-- caution: for inputs in which every compared pair is a row; pairs without a finite score take no part
SELECT
  event_id,
  CAST(count(*) FILTER (WHERE lag >= $before_start AND lag < $before_end) AS BIGINT) AS n_before,
  CAST(count(*) FILTER (WHERE lag >= $after_start AND lag <= $after_end) AS BIGINT) AS n_after
FROM used_pairs
WHERE score IS NOT NULL
GROUP BY event_id
