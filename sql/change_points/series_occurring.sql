-- grain: one row per series that is evaluated
-- reads: points_of_series (series_id, n_points, n_annotations)
-- params: none
-- keep: it is read often
-- caution: all that occur, where nothing says which were annotated; each is a cluster of its own
SELECT
  series_id,
  series_id AS cluster,
  CAST(NULL AS BIGINT) AS n_obs,
  n_points,
  n_annotations,
  TRUE AS passes_where
FROM points_of_series
WHERE NOT series_id IS NULL
