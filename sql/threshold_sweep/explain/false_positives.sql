-- grain: one row per false positive
-- reads: explained_rows (segment, score, label, source_file, file_row_number)
-- params: $lowest_score
-- caution: the most confident errors come first
SELECT
  segment,
  score,
  source_file,
  file_row_number
FROM explained_rows
WHERE score >= $lowest_score AND NOT label
ORDER BY score DESC, segment, source_file, file_row_number
