-- grain: one row per prediction without a finite score that counts as below every threshold
-- reads: explained_rows (segment, score, label, source_file, file_row_number)
-- params: none
-- caution: their score is minus infinity here
SELECT
  segment,
  label,
  source_file,
  file_row_number
FROM explained_rows
WHERE score - score <> CAST('0.0' AS DOUBLE) OR score IS NULL
ORDER BY source_file, file_row_number, segment
