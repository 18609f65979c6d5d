-- grain: one row per segment and replicate
-- reads: outcomes (run_number, is_run, covering), runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: a run on a series with an unknown number of observations has no covering
SELECT
  runs_of_series.segment,
  runs_of_series.replicate,
  CAST(count(outcomes.covering) AS BIGINT) AS n_covered,
  sum(CAST(outcomes.covering AS DECIMAL(38, 15))) AS covering
FROM outcomes
INNER JOIN runs_of_series ON outcomes.run_number = runs_of_series.run_number
WHERE outcomes.is_run
GROUP BY runs_of_series.segment, runs_of_series.replicate
