-- grain: one row per prediction that is counted
-- reads: predictions_read (passes_where, segment, score, label, weight, source_file, file_row_number)
-- params: none
-- caution: where predictions without a valid score count, theirs is minus infinity; segment stands for the grouping
--   columns, the id and the clusters
SELECT
  segment,
  score,
  label,
  weight,
  source_file,
  file_row_number
FROM predictions_read
WHERE passes_where AND label IS NOT NULL AND score IS NOT NULL
