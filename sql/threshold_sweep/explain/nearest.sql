-- grain: one row per prediction
-- reads: explained_rows (segment, score, label, source_file, file_row_number)
-- params: $threshold, $lowest_score
-- caution: in the order of the distance from the threshold, on either side of it
SELECT
  segment,
  score,
  CASE
    WHEN score >= $lowest_score AND label THEN 'tp'
    WHEN score >= $lowest_score THEN 'fp'
    WHEN label THEN 'fn'
    ELSE 'tn'
  END AS outcome,
  source_file,
  file_row_number
FROM explained_rows
ORDER BY abs(score - $threshold), score DESC, segment, source_file, file_row_number
