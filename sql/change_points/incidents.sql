-- grain: one row per annotation of the series of a run, where incidents last
-- reads: annotations_read (passes_where, series_id, start, end), runs_of_series (run_number, series_id)
-- params: none
-- caution: as annotations; position is the start
SELECT
  r.run_number,
  p.start AS position,
  p."end" AS position_of_end
FROM annotations_read AS p
INNER JOIN runs_of_series AS r ON p.series_id = r.series_id
WHERE p.passes_where
