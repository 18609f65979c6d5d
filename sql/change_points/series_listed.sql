-- grain: one row per series that is evaluated
-- reads: series_read (passes_where, series_id, segment, cluster, n_obs)
-- params: none
-- segment: series
-- keep: it is read often
-- caution: those that the input series lists, where nothing says who looked at them
SELECT
  series_id,
  segment,
  cluster,
  n_obs,
  TRUE AS passes_where
FROM series_read
WHERE passes_where AND NOT series_id IS NULL
