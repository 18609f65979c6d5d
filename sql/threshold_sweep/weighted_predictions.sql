-- grain: one row per prediction with a finite score and a label
-- reads: evaluated_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: NaN and infinity minus themselves are NaN; the weight is 1 where rows have none
SELECT
  segment,
  replicate,
  score,
  label,
  weight
FROM evaluated_predictions
WHERE (score - score) = CAST('0.0' AS DOUBLE) AND label IS NOT NULL
