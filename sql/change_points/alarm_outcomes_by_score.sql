-- grain: one row per change of the counts of a run at a score
-- reads: outcomes (run_number, is_always, score, is_row, tp, n_predicted, n_false, n_ignored, n_merged, n_alerted, n_ahead,
--   lead),
--   runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: as outcomes_by_score, for alarms: a prediction may have several rows, or none of its own
SELECT
  r.segment,
  r.replicate,
  m.score,
  m.is_row,
  m.tp,
  m.n_predicted,
  m.n_false,
  m.n_ignored,
  m.n_merged,
  m.n_alerted,
  m.n_ahead,
  m.lead
FROM outcomes AS m
INNER JOIN runs_of_series AS r ON m.run_number = r.run_number
WHERE NOT m.is_always
