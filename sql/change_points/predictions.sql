-- grain: one row per prediction of a run
-- reads: predictions_read (passes_where, series_id, position, segment), runs_of_series (run_number, series_id, segment)
-- params: none
-- segment: p of predictions, r of predictions
-- caution: segment stands for the grouping columns of predictions; with separate annotators a prediction is in several
--   runs
SELECT
  r.run_number,
  p.position
FROM predictions_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id AND p.segment IS NOT DISTINCT FROM r.segment
WHERE p.passes_where AND NOT p.position IS NULL
