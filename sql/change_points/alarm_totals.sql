-- grain: one row per segment and replicate
-- reads: outcomes (run_number, is_row, is_run, is_always, tp, n_true, n_predicted, n_false, n_ignored, n_merged, n_alerted,
--   n_ahead, lead), runs_of_series (run_number, series_id, segment, replicate), observed_time (series_id, observed)
-- params: none
-- caution: as totals, for alarms: runs with the observed time of their series, and alarms without a score
SELECT
  runs_of_series.segment,
  runs_of_series.replicate,
  CAST(count_if(outcomes.is_run) AS BIGINT) AS n_series,
  CAST(sum(outcomes.n_true) AS BIGINT) AS n_true,
  CAST(0 AS DECIMAL(38, 15)) AS recall_sum,
  CAST(sum(outcomes.n_predicted) AS BIGINT) AS n_always,
  CAST(sum(outcomes.tp) AS BIGINT) AS tp_always,
  CAST(0 AS DECIMAL(38, 15)) AS recall_always,
  CAST(count_if(outcomes.is_row) AS BIGINT) AS n_rows,
  CAST(sum(outcomes.n_false) AS BIGINT) AS n_false_always,
  CAST(sum(outcomes.n_ignored) AS BIGINT) AS n_ignored_always,
  CAST(sum(outcomes.n_merged) AS BIGINT) AS n_merged_always,
  CAST(sum(outcomes.n_alerted) AS BIGINT) AS n_alerted_always,
  CAST(sum(outcomes.n_ahead) AS BIGINT) AS n_ahead_always,
  sum(CAST(coalesce(outcomes.lead * outcomes.n_alerted, 0) AS DECIMAL(38, 15))) AS lead_sum_always,
  CAST(0 AS DECIMAL(38, 15)) AS lead_sum,
  sum(CAST(CASE WHEN outcomes.is_run THEN coalesce(o.observed, 0) ELSE 0 END AS DECIMAL(38, 15))) AS observed
FROM outcomes
INNER JOIN runs_of_series ON outcomes.run_number = runs_of_series.run_number
LEFT JOIN observed_time AS o ON runs_of_series.series_id = o.series_id
WHERE outcomes.is_always
GROUP BY runs_of_series.segment, runs_of_series.replicate
