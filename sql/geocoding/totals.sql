-- grain: one row per segment and replicate
-- reads: toponyms (segment, replicate, is_gold, is_predicted, is_located)
-- params: none
-- caution: gold mentions and predictions, whatever their distance; a row that is gold and predicted is aligned
SELECT
  segment,
  replicate,
  CAST(count_if(is_gold) AS BIGINT) AS n_gold,
  CAST(count_if(is_predicted) AS BIGINT) AS n_predicted,
  CAST(count_if(is_located AND NOT is_gold) AS BIGINT) AS n_spurious
FROM toponyms
GROUP BY segment, replicate
