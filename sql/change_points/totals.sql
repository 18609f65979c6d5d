-- grain: one row per segment and replicate
-- reads: matched (run_number, is_row, is_run, is_always, tp, n_true, share),
--   runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: runs, and the predictions that count at every threshold: those without a score, and index 0 of tcpd
SELECT
  runs_of_series.segment,
  runs_of_series.replicate,
  CAST(count_if(matched.is_run) AS BIGINT) AS n_series,
  CAST(sum(matched.n_true) AS BIGINT) AS n_true,
  CAST(0 AS DECIMAL(38, 15)) AS recall_sum,
  CAST(count_if(NOT matched.is_run) AS BIGINT) AS n_always,
  CAST(sum(matched.tp) AS BIGINT) AS tp_always,
  sum(CAST(matched.share AS DECIMAL(38, 15))) AS recall_always,
  CAST(count_if(matched.is_row) AS BIGINT) AS n_rows
FROM matched
INNER JOIN runs_of_series ON matched.run_number = runs_of_series.run_number
WHERE matched.is_always
GROUP BY runs_of_series.segment, runs_of_series.replicate
