-- grain: one row per segment and score
-- reads: matched (run_number, is_always, score, tp), runs_of_series (run_number, segment)
-- params: none
-- caution: for areas from every score where the thresholds are fewer; replicates play no part in areas
SELECT
  runs_of_series.segment,
  CAST(0 AS SMALLINT) AS replicate,
  matched.score,
  CAST(count(*) AS BIGINT) AS n_predicted,
  CAST(sum(matched.tp) AS BIGINT) AS tp
FROM matched
INNER JOIN runs_of_series ON matched.run_number = runs_of_series.run_number
WHERE NOT matched.is_always
GROUP BY runs_of_series.segment, matched.score
