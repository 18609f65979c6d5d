-- grain: one row per segment, replicate and cell of the score
-- reads: probabilities (segment, replicate, cell, score, label)
-- params: none
-- caution: for rows without weights; every term is a decimal before it is added; test_variance is what a row with its
--   score as probability adds to the variance of Spiegelhalter's sum of (label - score) (1 - 2 score)
SELECT
  segment,
  replicate,
  cell,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count_if(NOT label) AS BIGINT) AS n_negative,
  CAST(sum(CAST(score AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS scores,
  CAST(sum(CAST(CASE WHEN label THEN score ELSE 0 END AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS scores_positive,
  CAST(sum(CAST(score * score AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS score_squares,
  CAST(
    sum(CAST((1 - 2 * score) * (1 - 2 * score) * score * (1 - score) AS DECIMAL(18, 15))) AS DECIMAL(38, 15)
  ) AS test_variance
FROM probabilities
GROUP BY segment, replicate, cell
