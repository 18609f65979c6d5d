-- grain: one row per segment, replicate and lead
-- reads: outcomes (run_number, is_always, n_alerted, lead), runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: as leads, of alarms without a score
SELECT
  runs_of_series.segment,
  runs_of_series.replicate,
  outcomes.lead,
  CAST(sum(outcomes.n_alerted) AS BIGINT) AS n_alerted
FROM outcomes
INNER JOIN runs_of_series ON outcomes.run_number = runs_of_series.run_number
WHERE outcomes.is_always AND NOT outcomes.lead IS NULL
GROUP BY runs_of_series.segment, runs_of_series.replicate, outcomes.lead
