-- grain: one row per segment and score
-- reads: outcomes (run_number, is_always, score, tp), runs_of_series (run_number, segment)
-- params: none
-- caution: for areas from every score where the thresholds are fewer; replicates play no part in areas
SELECT
  runs_of_series.segment,
  CAST(0 AS SMALLINT) AS replicate,
  outcomes.score,
  CAST(count(*) AS BIGINT) AS n_predicted,
  CAST(sum(outcomes.tp) AS BIGINT) AS tp
FROM outcomes
INNER JOIN runs_of_series ON outcomes.run_number = runs_of_series.run_number
WHERE NOT outcomes.is_always
GROUP BY runs_of_series.segment, outcomes.score
