-- grain: one row per series that is evaluated
-- reads: annotated (series_id), series_read (passes_where, series_id, segment, cluster, n_obs)
-- params: none
-- segment: series_read of series
-- keep: it is read often
-- caution: those that somebody looked at and that the input series lists
SELECT
  series_read.series_id,
  series_read.segment,
  series_read.cluster,
  series_read.n_obs,
  TRUE AS passes_where
FROM annotated
INNER JOIN series_read ON annotated.series_id = series_read.series_id
WHERE series_read.passes_where
