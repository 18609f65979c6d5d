-- grain: one row per segment, replicate, bin and lead
-- reads: predictions (segment, replicate, bin, score, n_alerted, lead)
-- params: none
-- caution: true points whose first alarm comes so long before them; below 0 where another alarm becomes the first
SELECT
  segment,
  replicate,
  bin,
  lead,
  CAST(sum(n_alerted) AS BIGINT) AS n_alerted,
  min(score) AS lowest,
  max(score) AS highest
FROM predictions
WHERE NOT lead IS NULL
GROUP BY segment, replicate, bin, lead
