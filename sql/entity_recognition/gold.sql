-- grain: one row per segment and replicate
-- reads: mentions (segment, replicate, is_gold)
-- params: none
-- caution: what there is to find; it is repeated for every value of the grouping columns of the predictions
SELECT
  segment,
  replicate,
  CAST(count(*) AS BIGINT) AS n_gold
FROM mentions
WHERE is_gold
GROUP BY segment, replicate
