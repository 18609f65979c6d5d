-- grain: one row per prediction that counts at the threshold
-- reads: explained_rows (segment, series_id, run_number, position, true_position, score, status)
-- params: none
-- caution: status is 0 for a prediction that is no true positive
SELECT
  segment,
  series_id,
  run_number,
  position,
  true_position,
  score,
  status
FROM explained_rows
ORDER BY score DESC, series_id, segment, position
