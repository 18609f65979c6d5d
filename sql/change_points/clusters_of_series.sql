-- grain: one row per evaluated series
-- reads: annotated_series (series_id, cluster)
-- params: none
-- caution: none
SELECT
  series_id,
  cluster
FROM annotated_series
