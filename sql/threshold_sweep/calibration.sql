-- grain: one row per segment, replicate and cell of the probability
-- reads: probabilities (segment, replicate, cell, probability, label)
-- params: none
-- caution: for rows without weights; every term is a decimal before it is added; test_variance is what a row adds to the
--   variance of Spiegelhalter's sum of (label - probability) (1 - 2 probability)
SELECT
  segment,
  replicate,
  cell,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count(label) - count_if(label) AS BIGINT) AS n_negative,
  CAST(sum(CAST(probability AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS scores,
  CAST(sum(CAST(CASE WHEN label THEN probability ELSE 0 END AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS scores_positive,
  CAST(sum(CAST(probability * probability AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS score_squares,
  CAST(sum(CAST(slope * slope * probability * (1 - probability) AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS test_variance
FROM (
  SELECT
    segment,
    replicate,
    cell,
    probability,
    label,
    1 - 2 * probability AS slope
  FROM probabilities
) AS sloping
GROUP BY segment, replicate, cell
