-- grain: one row per prediction that is counted
-- reads: predictions_read (passes_where, segment, used_score, label, weight)
-- params: none
-- caution: used_score is the score or, where predictions without a valid one count, minus infinity for these; segment
--   stands for the grouping columns and the id
SELECT
  segment,
  used_score AS score,
  label,
  weight
FROM predictions_read
WHERE passes_where AND label IS NOT NULL AND used_score IS NOT NULL
