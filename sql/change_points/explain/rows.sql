-- grain: one row per prediction that counts at the threshold, of a run
-- reads: outcomes (run_number, is_shown, is_run, position, true_position, delay, score, status),
--   runs_of_series (run_number, series_id, segment)
-- params: none
-- caution: is_shown is a condition: with tcpd index 0 is a prediction of every run and no row of the input; status is 0
--   for a false point and 1 for a true one, of alarms also 2 for a repeat that counts neither way, and 3 for one that is
--   one alarm with an earlier one
SELECT
  r.series_id,
  r.segment,
  r.run_number,
  m.position,
  m.true_position,
  m.delay,
  m.score,
  m.status AS status
FROM outcomes AS m
INNER JOIN runs_of_series AS r ON m.run_number = r.run_number
WHERE NOT m.is_run AND m.is_shown
