-- grain: one row per annotation of the series and the annotator of a run
-- reads: annotations_read (passes_where, series_id, position, annotator_id),
--   runs_of_series (run_number, series_id, by:annotator_id)
-- params: none
-- caution: for separate annotators, each of whom has a run of its own
SELECT
  r.run_number,
  p.position
FROM annotations_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id AND p.annotator_id = r."by:annotator_id"
WHERE p.passes_where
