-- grain: one row per segment, replicate and bin
-- reads: predictions (segment, replicate, bin, score, label)
-- params: none
-- caution: a bin holds the rows between two neighbouring thresholds, so add up from above for "at or above"; lowest and
--   highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count(label) - count_if(label) AS BIGINT) AS n_negative,
  min(score) AS lowest,
  max(score) AS highest
FROM predictions
GROUP BY segment, replicate, bin
