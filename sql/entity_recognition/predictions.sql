-- grain: one row per segment and replicate
-- reads: mentions (segment, replicate, is_gold, is_predicted)
-- params: none
-- caution: for predictions without scores; a row that is gold and predicted is a matched pair
SELECT
  segment,
  replicate,
  CAST(count_if(is_gold) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold) AS BIGINT) AS fp
FROM mentions
WHERE is_predicted
GROUP BY segment, replicate
