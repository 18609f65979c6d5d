-- grain: one row per prediction that is counted
-- reads: predictions_read (passes_where, segment, unit_key, used_score, label, weight, is_scored)
-- params: none
-- caution: used_score is the score as it is in the file, of the rows in which it is finite; where predictions without a
--   valid score count, theirs is minus infinity; weights are rounded as they are where they are counted
SELECT
  segment,
  unit_key AS unit,
  used_score AS score,
  label,
  CAST(CAST(weight AS DECIMAL(38, 15)) AS DOUBLE) AS weight
FROM predictions_read
WHERE passes_where AND label IS NOT NULL AND is_scored
