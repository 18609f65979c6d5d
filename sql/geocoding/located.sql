-- grain: one row per segment, replicate and bin
-- reads: toponyms_by_distance (segment, replicate, bin, score, is_gold)
-- params: none
-- caution: the score is minus the distance in km, so a bin holds the distances between two neighbouring tolerances, and
--   adding up from above gives "within"; lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(count(*) AS BIGINT) AS n_located,
  min(score) AS lowest,
  max(score) AS highest
FROM toponyms_by_distance
WHERE is_gold AND score IS NOT NULL
GROUP BY segment, replicate, bin
