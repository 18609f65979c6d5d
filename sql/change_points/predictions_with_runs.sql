-- grain: one row per prediction that was read
-- reads: predictions_read (passes_where, score_state, series_id, position, segment), annotated_series (series_id),
--   declared_runs (series_id, segment)
-- params: none
-- segment: p of predictions, r of predictions
-- caution: segment stands for the grouping columns of predictions
SELECT
  p.passes_where,
  p.score_state,
  p.series_id,
  p.position,
  NOT s.series_id IS NULL AS is_annotated,
  NOT r.series_id IS NULL AS is_declared
FROM predictions_read AS p
LEFT JOIN annotated_series AS s ON p.series_id = s.series_id
LEFT JOIN declared_runs AS r ON p.series_id = r.series_id AND p.segment IS NOT DISTINCT FROM r.segment
