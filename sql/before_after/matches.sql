-- grain: one row per segment, replicate and bin
-- reads: pairs (segment, replicate, bin, score, lag)
-- params: $before_start, $before_end, $near_start, $after_start, $after_end
-- caution: a bin holds the pairs between two neighbouring thresholds, so add up from above for "at or above"; the pair
--   of an article at the moment of the event (lag 0) is after it; lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(lag >= $before_start AND lag < $before_end) AS BIGINT) AS m_before,
  CAST(count_if(lag >= $after_start AND lag <= $after_end) AS BIGINT) AS m_after,
  CAST(count_if(lag >= $near_start AND lag < $before_end) AS BIGINT) AS m_near,
  min(score) AS lowest,
  max(score) AS highest
FROM pairs
GROUP BY segment, replicate, bin
