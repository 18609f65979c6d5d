-- grain: one row per run
-- reads: runs_of_series (run_number, segment, series_id)
-- params: none
-- caution: none
SELECT
  run_number,
  segment,
  series_id
FROM runs_of_series
