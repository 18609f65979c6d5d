-- grain: one row per run, without its annotator: the run that a prediction belongs to
-- reads: runs_of_series (series_id, segment, is_first)
-- params: none
-- segment: predictions
-- caution: segment stands for the grouping columns of predictions
SELECT
  series_id,
  segment
FROM runs_of_series
WHERE is_first
