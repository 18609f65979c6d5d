-- grain: one row per run and annotator of its series
-- reads: runs_of_series (run_number, series_id), annotators (series_id, annotator)
-- params: none
-- caution: also annotators who marked nothing
SELECT
  r.run_number,
  a.annotator
FROM runs_of_series AS r
INNER JOIN annotators AS a ON r.series_id = a.series_id
