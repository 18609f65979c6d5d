-- grain: one row per segment and replicate
-- reads: weighted_predictions (segment, replicate, score, label)
-- params: none
-- caution: likelihood.sql for rows without weights, so that sums of weights are numbers of rows; a probability is at
--   least 1e-15, so that three digits hold its logarithm
SELECT
  segment,
  replicate,
  CAST(count(label) AS BIGINT) AS n,
  CAST(count_if(is_outside) AS BIGINT) AS n_outside,
  CAST(count(label) AS DECIMAL(38, 15)) AS weights,
  CAST(count(label) AS DECIMAL(38, 15)) AS squares,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS first,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS weighted,
  sum(CAST(log_likelihood * log_likelihood AS DECIMAL(38, 15))) AS second,
  CAST(sum(CAST(distance * distance AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS squared_errors
FROM (
  SELECT
    segment,
    replicate,
    label,
    is_outside,
    ln(CASE WHEN label THEN clipped ELSE 1 - clipped END) AS log_likelihood,
    CASE WHEN is_outside THEN 0 WHEN label THEN 1 - score ELSE score END AS distance
  FROM (
    SELECT
      segment,
      replicate,
      score,
      label,
      score < 0 OR score > 1 AS is_outside,
      least(greatest(score, CAST('1e-15' AS DOUBLE)), 1 - CAST('1e-15' AS DOUBLE)) AS clipped
    FROM weighted_predictions
  ) AS probabilities
) AS losses
GROUP BY segment, replicate
