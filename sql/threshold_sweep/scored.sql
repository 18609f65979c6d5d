-- grain: one row per prediction with a finite score and a label
-- reads: weighted_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: for areas; weights are rounded as they are where they are counted
SELECT
  segment,
  replicate,
  score,
  label,
  CAST(CAST(weight AS DECIMAL(38, 15)) AS DOUBLE) AS weight
FROM weighted_predictions
