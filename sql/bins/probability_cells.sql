-- grain: one row per row, with the cell of its probability
-- reads: probabilities_alone (probability)
-- params: $fineness, $bins, $fewer_bins
-- caution: the number of a cell is the sum of a cell and of a bin, neither of which ever falls; $fewer_bins is one bin fewer
--   than $bins, which makes it certain, whatever is rounded, that first_bin is never a bin above that of the score
SELECT
  *,
  CAST(
    ceil($fineness * (sqrt(sqrt(sqrt("probability"))) - sqrt(sqrt(sqrt((1 - "probability"))))))
    + "first_bin"
    + CAST(("probability" > ("first_bin" + 1) / $bins) AS DOUBLE) AS SMALLINT
  ) AS cell
FROM (
  SELECT
    *,
    floor("probability" * $fewer_bins) AS first_bin
  FROM probabilities_alone
) AS in_bins
