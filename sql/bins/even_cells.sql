-- grain: one row per row, with its cell as bin: 0 below $low, 1 up to $high, $last from there on
-- reads: canonical_rows (score)
-- params: $low, $high, $scale, $last
-- caution: the cell never falls while scores rise, whatever is rounded, and is NULL for NULL, NaN and infinite: every branch
--   checks that itself, most rows in the first, so that rows need no barrier before; the type becomes the smallest that
--   fits, which lets an engine aggregate in a table that the cell indexes
SELECT
  *,
  CAST(
    CASE
      WHEN (score - score) = CAST('0.0' AS DOUBLE) AND score >= $low AND score < $high
        THEN floor((score - $low) * $scale) + 1
      WHEN (score - score) = CAST('0.0' AS DOUBLE) AND score < $low THEN 0
      WHEN (score - score) = CAST('0.0' AS DOUBLE) THEN $last
    END AS INTEGER
  ) AS "bin"
FROM canonical_rows
