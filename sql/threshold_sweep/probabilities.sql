-- grain: one row per prediction with a label, a score from 0 to 1 and a weight above 0
-- reads: weighted_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: score_cell stands for an expression of the score, its cell or the score itself
SELECT
  segment,
  replicate,
  score_cell AS cell,
  score,
  label,
  weight
FROM weighted_predictions
WHERE score >= 0 AND score <= 1 AND weight > 0
