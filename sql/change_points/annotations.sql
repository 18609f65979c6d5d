-- grain: one row per annotation of the series of a run
-- reads: annotations_read (passes_where, series_id, position), runs_of_series (run_number, series_id)
-- params: none
-- caution: a position that several annotators mark has several rows
SELECT
  r.run_number,
  p.position
FROM annotations_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id
WHERE p.passes_where
