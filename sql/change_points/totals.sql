-- grain: one row per segment and replicate
-- reads: outcomes (run_number, is_row, is_run, is_always, tp, n_true, share),
--   runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: runs, and the predictions that count at every threshold: those without a score, and index 0 of tcpd
SELECT
  runs_of_series.segment,
  runs_of_series.replicate,
  CAST(count_if(outcomes.is_run) AS BIGINT) AS n_series,
  CAST(sum(outcomes.n_true) AS BIGINT) AS n_true,
  CAST(0 AS DECIMAL(38, 15)) AS recall_sum,
  CAST(count_if(NOT outcomes.is_run) AS BIGINT) AS n_always,
  CAST(sum(outcomes.tp) AS BIGINT) AS tp_always,
  sum(CAST(outcomes.share AS DECIMAL(38, 15))) AS recall_always,
  CAST(count_if(outcomes.is_row) AS BIGINT) AS n_rows
FROM outcomes
INNER JOIN runs_of_series ON outcomes.run_number = runs_of_series.run_number
WHERE outcomes.is_always
GROUP BY runs_of_series.segment, runs_of_series.replicate
