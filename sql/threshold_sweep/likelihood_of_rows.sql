-- grain: one row per segment and replicate
-- reads: weighted_predictions (segment, replicate, score, label)
-- params: none
-- caution: likelihood.sql for rows without weights, so that sums of weights are numbers of rows; a probability is at
--   least 1e-15, so that three digits hold its logarithm, and four its square; most scores lie so far from 0 and 1 that
--   one comparison tells it, which saves the others
SELECT
  segment,
  replicate,
  CAST(count(label) AS BIGINT) AS n,
  CAST(count_if(is_outside) AS BIGINT) AS n_outside,
  CAST(count(label) AS DECIMAL(38, 15)) AS weights,
  CAST(count(label) AS DECIMAL(38, 15)) AS squares,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS first,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS weighted,
  CAST(sum(CAST(log_likelihood * log_likelihood AS DECIMAL(19, 15))) AS DECIMAL(38, 15)) AS second,
  CAST(sum(CAST(distance * distance AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS squared_errors
FROM (
  SELECT
    segment,
    replicate,
    label,
    is_outside,
    ln(abs(clipped - CAST(NOT label AS DOUBLE))) AS log_likelihood,
    CASE WHEN is_outside THEN 0 ELSE abs(score - CAST(label AS DOUBLE)) END AS distance
  FROM (
    SELECT
      segment,
      replicate,
      score,
      label,
      CASE WHEN is_inner THEN FALSE ELSE score < 0 OR score > 1 END AS is_outside,
      CASE
        WHEN is_inner THEN score
        ELSE least(greatest(score, CAST('1e-15' AS DOUBLE)), 1 - CAST('1e-15' AS DOUBLE))
      END AS clipped
    FROM (
      SELECT
        segment,
        replicate,
        score,
        label,
        abs(score - CAST('0.5' AS DOUBLE)) < CAST('0.49999999999999' AS DOUBLE) AS is_inner
      FROM weighted_predictions
    ) AS placed
  ) AS probabilities
) AS losses
GROUP BY segment, replicate
