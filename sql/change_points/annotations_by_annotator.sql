-- grain: one row per annotation of the series of a run
-- reads: annotations_read (passes_where, series_id, position, annotator_id), runs_of_series (run_number, series_id),
--   annotators (series_id, annotator_id, annotator)
-- params: none
-- caution: for the recall of tcpd, which is averaged over annotators
SELECT
  r.run_number,
  p.position,
  a.annotator
FROM annotations_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id
INNER JOIN annotators AS a ON p.series_id = a.series_id AND p.annotator_id = a.annotator_id
WHERE p.passes_where
