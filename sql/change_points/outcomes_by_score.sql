-- grain: one row per prediction of a run that has a score
-- reads: outcomes (run_number, is_always, score, is_row, tp, share), runs_of_series (run_number, segment, replicate)
-- params: none
-- caution: predictions that count at every threshold are in totals
SELECT
  r.segment,
  r.replicate,
  m.score,
  m.is_row,
  m.tp,
  m.share
FROM outcomes AS m
INNER JOIN runs_of_series AS r ON m.run_number = r.run_number
WHERE NOT m.is_always
