-- grain: no row: how long series were observed is not asked for
-- reads: annotated_series (series_id)
-- params: none
-- caution: stands for observed_time
SELECT
  series_id,
  CAST(0 AS BIGINT) AS observed
FROM annotated_series
WHERE FALSE
