-- grain: one row per segment and replicate
-- reads: weighted_predictions (segment, replicate, score, label, weight)
-- params: none
-- caution: only for scores that are probabilities, so n_outside must be 0; a probability nearer than 1e-15 to 0 or 1
--   counts as 1e-15 away from it; rows of weight 0 are no rows here; every term is a decimal before it is added, so that
--   the sums are exact
SELECT
  segment,
  replicate,
  CAST(count_if(weight > 0) AS BIGINT) AS n,
  CAST(count_if(weight > 0 AND is_outside) AS BIGINT) AS n_outside,
  sum(CAST(weight AS DECIMAL(38, 15))) AS weights,
  sum(CAST(weight * weight AS DECIMAL(38, 15))) AS squares,
  sum(CAST(weight * log_likelihood AS DECIMAL(38, 15))) AS first,
  sum(CAST(weight * weight * log_likelihood AS DECIMAL(38, 15))) AS weighted,
  sum(CAST(weight * weight * log_likelihood * log_likelihood AS DECIMAL(38, 15))) AS second,
  sum(CAST(weight * squared_error AS DECIMAL(38, 15))) AS squared_errors
FROM (
  SELECT
    segment,
    replicate,
    weight,
    is_outside,
    CASE
      WHEN is_outside THEN 0
      WHEN label THEN ln(clipped)
      ELSE ln(1 - clipped)
    END AS log_likelihood,
    CASE
      WHEN is_outside THEN 0
      WHEN label THEN (1 - score) * (1 - score)
      ELSE score * score
    END AS squared_error
  FROM (
    SELECT
      segment,
      replicate,
      score,
      label,
      weight,
      score < 0 OR score > 1 AS is_outside,
      least(greatest(score, CAST('1e-15' AS DOUBLE)), 1 - CAST('1e-15' AS DOUBLE)) AS clipped
    FROM weighted_predictions
  ) AS probabilities
) AS losses
GROUP BY segment, replicate
