-- grain: one row per matched prediction
-- reads: outcomes (run_number, score, position, true_position, delay)
-- params: none
-- caution: predictions that add nothing have no delay
SELECT
  run_number,
  CAST(row_number() OVER (PARTITION BY run_number, position ORDER BY score DESC, true_position) AS BIGINT) AS rank,
  position,
  true_position,
  delay,
  score
FROM outcomes
WHERE delay IS NOT NULL
