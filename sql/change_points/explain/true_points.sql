-- grain: one row per true point of a run
-- reads: annotations_of_runs (run_number, position), explained_runs (run_number, segment, series_id)
-- params: none
-- caution: a position that several annotators mark has one row
SELECT DISTINCT
  r.segment,
  r.series_id,
  r.run_number,
  a.position
FROM annotations_of_runs AS a
INNER JOIN explained_runs AS r ON a.run_number = r.run_number
ORDER BY r.series_id, r.segment, a.position
