-- grain: one row per prediction that where keeps
-- reads: predictions_read (passes_where, segment, score_given, label, weight)
-- params: none
-- caution: scores may be NULL, NaN or infinite and labels NULL, which cells tell; rows are independent
SELECT
  segment,
  CAST(0 AS SMALLINT) AS replicate,
  score_given AS score,
  label,
  weight
FROM predictions_read
WHERE passes_where
