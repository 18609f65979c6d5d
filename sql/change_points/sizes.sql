-- grain: one row per run
-- reads: runs_of_series (run_number, series_id), points_of_series (series_id, n_points)
-- params: none
-- caution: the rows of a series, those of all its runs, are about what a run has
SELECT
  r.run_number,
  k.n_points AS n_rows
FROM runs_of_series AS r
INNER JOIN points_of_series AS k ON r.series_id = k.series_id
