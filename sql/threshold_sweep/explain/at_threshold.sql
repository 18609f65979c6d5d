-- grain: one row per prediction with a score equal to the threshold
-- reads: explained_rows (segment, score, label, source_file, file_row_number)
-- params: $threshold
-- caution: whether these are retrieved is what a boundary decides
SELECT
  segment,
  score,
  label,
  source_file,
  file_row_number
FROM explained_rows
WHERE score = $threshold
ORDER BY source_file, file_row_number, segment
