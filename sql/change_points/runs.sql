-- grain: one row per run
-- reads: runs_of_series (run_number, is_first, n_obs)
-- params: none
-- caution: n_obs is NULL where covering is not wanted
SELECT
  run_number,
  is_first,
  n_obs
FROM runs_of_series
