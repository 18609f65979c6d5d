-- grain: one row per segment, replicate and bin
-- reads: pairs (segment, replicate, bin, score, lag)
-- params: $before_start, $before_end, $near_start, $after_start, $after_end
-- caution: for inputs in which every compared pair is a row, so that all bins together are the compared pairs; else as
--   matches.sql
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(lag >= $before_start AND lag < $before_end) AS BIGINT) AS n_before,
  CAST(count_if(lag >= $after_start AND lag <= $after_end) AS BIGINT) AS n_after,
  CAST(count_if(lag >= $before_start AND lag < $before_end) AS BIGINT) AS m_before,
  CAST(count_if(lag >= $after_start AND lag <= $after_end) AS BIGINT) AS m_after,
  CAST(count_if(lag >= $near_start AND lag < $before_end) AS BIGINT) AS n_near,
  CAST(count_if(lag >= $near_start AND lag < $before_end) AS BIGINT) AS m_near,
  min(score) AS lowest,
  max(score) AS highest
FROM pairs
GROUP BY segment, replicate, bin
