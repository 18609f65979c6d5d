-- grain: one row per run on a series
-- reads: outcomes (run_number, is_run, tp, n_true, share, delay, covering)
-- params: none
-- caution: all predictions, whatever their score; delays are decimals before they are added; covering is NULL where
--   segments cannot be counted in observations
SELECT
  run_number,
  CAST(sum(n_true) AS BIGINT) AS n_true,
  CAST(count_if(NOT is_run) AS BIGINT) AS n_predicted,
  CAST(sum(tp) AS BIGINT) AS tp,
  sum(CAST(share AS DECIMAL(38, 15))) AS mean_recall,
  CAST(count(delay) AS BIGINT) AS n_delays,
  sum(CAST(delay AS DECIMAL(38, 15))) AS delay_sum,
  max(covering) AS covering
FROM outcomes
GROUP BY run_number
