-- grain: one row per series that occurs
-- reads: predictions_read (passes_where, series_id), annotations_read (passes_where, series_id),
--   runs_read (passes_where, series_id)
-- params: none
-- caution: n_points counts rows of predictions, annotations and runs alike
SELECT
  series_id,
  CAST(count(*) AS BIGINT) AS n_points,
  CAST(count_if(is_annotation) AS BIGINT) AS n_annotations
FROM (
  SELECT
    series_id,
    FALSE AS is_annotation
  FROM predictions_read
  WHERE passes_where
  UNION ALL
  SELECT
    series_id,
    TRUE AS is_annotation
  FROM annotations_read
  WHERE passes_where
  UNION ALL
  SELECT
    series_id,
    FALSE AS is_annotation
  FROM runs_read
  WHERE passes_where
) AS points
GROUP BY series_id
