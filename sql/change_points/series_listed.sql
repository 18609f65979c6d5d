-- grain: one row per series that is evaluated
-- reads: series_read (kept, series_id, segment, cluster, n_obs)
-- params: none
-- caution: those that the input series lists, where nothing says who looked at them
SELECT
  series_id,
  segment,
  cluster,
  n_obs,
  TRUE AS kept
FROM series_read
WHERE kept AND NOT series_id IS NULL
