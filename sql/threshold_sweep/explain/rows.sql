-- grain: one row per prediction that is counted
-- reads: predictions_read (passes_where, segment, used_score, label, weight, source_file, file_row_number)
-- params: none
-- caution: used_score is the score or, where predictions without a valid one count, minus infinity for these; segment
--   stands for the grouping columns, the id and the clusters
SELECT
  segment,
  used_score AS score,
  label,
  weight,
  source_file,
  file_row_number
FROM predictions_read
WHERE passes_where AND label IS NOT NULL AND used_score IS NOT NULL
