-- grain: one row per segment, replicate and bin
-- reads: scored_mentions (segment, replicate, bin, score, is_gold, is_predicted)
-- params: none
-- caution: a bin holds the predictions between two neighbouring thresholds, so add up from above for "at or above";
--   lowest and highest are the certificate of the bin; a row that is gold and predicted is a matched pair
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(is_gold) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold) AS BIGINT) AS fp,
  min(score) AS lowest,
  max(score) AS highest
FROM scored_mentions
WHERE is_predicted
GROUP BY segment, replicate, bin
