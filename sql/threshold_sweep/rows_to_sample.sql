-- grain: one row per prediction that where keeps, with the cell of its score
-- reads: predictions_read (passes_where, segment, id, score)
-- params: none
-- caution: cells rise with the score, by its odds between 0 and 1 and by its logarithm elsewhere; NULL without a score
SELECT
  segment,
  id,
  score,
  CAST(
    CASE
      WHEN NOT score - score = 0 THEN NULL
      WHEN score >= 1 THEN 2000 + floor(256 * ln(score))
      WHEN score > 0 THEN floor(32 * (ln(score) - ln(1 - score)))
      WHEN score = 0 THEN -30000
      ELSE -30001 - floor(256 * ln(1 - score))
    END
    AS INTEGER
  ) AS cell
FROM predictions_read
WHERE passes_where
