-- grain: one row per false negative
-- reads: explained_rows (segment, score, label, source_file, file_row_number)
-- params: $lowest_score
-- caution: the most confident errors come first, which have the lowest scores
SELECT
  segment,
  score,
  source_file,
  file_row_number
FROM explained_rows
WHERE score < $lowest_score AND label
ORDER BY score, segment, source_file, file_row_number
