-- grain: one row per true point of a run that a prediction detects
-- reads: explained_detections (run_number, position)
-- params: none
-- caution: none
SELECT DISTINCT
  run_number,
  position
FROM explained_detections
