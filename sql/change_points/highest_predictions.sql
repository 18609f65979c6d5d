-- grain: one row per run and predicted position
-- reads: predictions_read (passes_where, series_id, position, score, segment),
--   runs_of_series (run_number, series_id, segment)
-- params: none
-- segment: p of predictions, r of predictions
-- caution: as scored_predictions, where a position counts once, with its highest score
SELECT
  r.run_number,
  p.position,
  max(p.score) AS score
FROM predictions_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id AND p.segment IS NOT DISTINCT FROM r.segment
WHERE p.passes_where AND NOT p.position IS NULL AND NOT p.score IS NULL
GROUP BY r.run_number, p.position
