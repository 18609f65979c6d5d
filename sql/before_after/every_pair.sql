-- grain: one row per segment, replicate and bin
-- reads: pairs (segment, replicate, bin, score, lag_hours)
-- params: $before_start, $before_end, $after_start, $after_end
-- caution: for inputs in which every compared pair is a row, so that all bins together are the compared pairs; else as
--   matches.sql
SELECT
  segment,
  replicate,
  bin,
  CAST(count(*) FILTER (WHERE lag_hours >= $before_start AND lag_hours < $before_end) AS BIGINT) AS n_before,
  CAST(count(*) FILTER (WHERE lag_hours >= $after_start AND lag_hours <= $after_end) AS BIGINT) AS n_after,
  CAST(count(*) FILTER (WHERE lag_hours >= $before_start AND lag_hours < $before_end) AS BIGINT) AS m_before,
  CAST(count(*) FILTER (WHERE lag_hours >= $after_start AND lag_hours <= $after_end) AS BIGINT) AS m_after,
  min(score) AS lowest,
  max(score) AS highest
FROM pairs
GROUP BY segment, replicate, bin
