-- grain: one row per segment, replicate and bin
-- reads: predictions (segment, replicate, bin, score, label, weight)
-- params: none
-- caution: as counts.sql, with sums of weights and of squared weights; every weight is a decimal before it is added, so
--   that the sums do not depend on the order of the rows
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count_if(NOT label) AS BIGINT) AS n_negative,
  CAST(count_if(label AND weight > 0) AS BIGINT) AS n_weighted_positive,
  CAST(count_if(NOT label AND weight > 0) AS BIGINT) AS n_weighted_negative,
  sum(CAST(CASE WHEN label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS weight_positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight END AS DECIMAL(38, 15))) AS weight_negative,
  sum(CAST(CASE WHEN label THEN weight * weight ELSE 0 END AS DECIMAL(38, 15))) AS squares_positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight * weight END AS DECIMAL(38, 15))) AS squares_negative,
  min(score) AS lowest,
  max(score) AS highest
FROM predictions
GROUP BY segment, replicate, bin
