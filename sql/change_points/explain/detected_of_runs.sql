-- grain: one row per true point of a run that a prediction detects
-- reads: outcomes (run_number, true_position), runs_of_series (run_number, segment)
-- params: none
-- caution: a true point may have several rows
SELECT
  r.segment,
  r.run_number,
  m.true_position AS position
FROM outcomes AS m
INNER JOIN runs_of_series AS r ON m.run_number = r.run_number
WHERE NOT m.true_position IS NULL
