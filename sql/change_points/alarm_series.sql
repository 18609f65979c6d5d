-- grain: one row per run on a series
-- reads: outcomes (run_number, tp, n_true, n_predicted, delay, covering)
-- params: none
-- caution: as series, for alarms
SELECT
  run_number,
  CAST(sum(n_true) AS BIGINT) AS n_true,
  CAST(sum(n_predicted) AS BIGINT) AS n_predicted,
  CAST(sum(tp) AS BIGINT) AS tp,
  CAST(0 AS DECIMAL(38, 15)) AS mean_recall,
  CAST(count(delay) AS BIGINT) AS n_delays,
  sum(CAST(delay AS DECIMAL(38, 15))) AS delay_sum,
  max(covering) AS covering
FROM outcomes
GROUP BY run_number
