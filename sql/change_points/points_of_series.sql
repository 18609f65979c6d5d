-- grain: one row per series that occurs
-- reads: predictions_read (kept, series_id), annotations_read (kept, series_id), runs_read (kept, series_id)
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
  WHERE kept
  UNION ALL
  SELECT
    series_id,
    TRUE AS is_annotation
  FROM annotations_read
  WHERE kept
  UNION ALL
  SELECT
    series_id,
    FALSE AS is_annotation
  FROM runs_read
  WHERE kept
) AS points
GROUP BY series_id
