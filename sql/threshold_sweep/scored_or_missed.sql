-- grain: one row per prediction with a label
-- reads: evaluated_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: as scored.sql, where predictions without a valid score count: their score is minus infinity
SELECT
  segment,
  replicate,
  score,
  label,
  CAST(CAST(weight AS DECIMAL(38, 15)) AS DOUBLE) AS weight
FROM evaluated_predictions
WHERE label IS NOT NULL
