-- grain: one row per score of a prediction
-- reads: mentions (score, is_predicted)
-- params: none
-- caution: in any order
SELECT DISTINCT
  score
FROM mentions
WHERE is_predicted
