-- grain: one row per series that is evaluated
-- reads: annotated (series_id)
-- params: none
-- keep: it is read often
-- caution: those that somebody looked at, where no input lists the series; each is a cluster of its own
SELECT
  series_id,
  series_id AS cluster,
  CAST(NULL AS BIGINT) AS n_obs,
  TRUE AS passes_where
FROM annotated
WHERE NOT series_id IS NULL
