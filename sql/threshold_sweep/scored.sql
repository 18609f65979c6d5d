-- grain: one row per prediction with a label and a finite score
-- reads: weighted_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: for areas; weights are rounded as they are where they are counted; where predictions without a valid score
--   count, theirs is minus infinity
SELECT
  segment,
  replicate,
  score,
  label,
  CAST(CAST(weight AS DECIMAL(38, 15)) AS DOUBLE) AS weight
FROM weighted_predictions
WHERE label IS NOT NULL
