-- grain: one row per prediction with a label, a score from 0 to 1 and a weight above 0
-- reads: weighted_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: the cell of the probability is added to what this selects
SELECT
  segment,
  replicate,
  score AS probability,
  label,
  weight
FROM weighted_predictions
WHERE score >= 0 AND score <= 1 AND weight > 0
