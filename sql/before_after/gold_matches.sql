-- grain: one row per segment, replicate and bin
-- reads: gold_pairs (segment, replicate, bin, score, is_gold)
-- params: none
-- caution: pairs that the matcher did not store have no bin and count in gold_totals.sql only; lowest and highest are
--   the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  'match' AS level,
  CAST(count(*) FILTER (WHERE is_gold) AS BIGINT) AS tp,
  CAST(count(*) FILTER (WHERE NOT is_gold) AS BIGINT) AS fp,
  min(score) AS lowest,
  max(score) AS highest
FROM gold_pairs
GROUP BY segment, replicate, bin
