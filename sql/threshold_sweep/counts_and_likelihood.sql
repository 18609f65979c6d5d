-- grain: one row per segment, replicate and bin
-- reads: predictions (segment, replicate, bin, score, label)
-- params: none
-- caution: for rows without weights, so that sums of weights are numbers of rows; what likelihood.sql says holds, too,
--   but rows without a bin must not be added to n and to what follows it, and their scores are NULL, because an engine
--   may answer comparisons from statistics that leave out NaN; a probability is at least 1e-15, so that three digits
--   hold its logarithm, and four its square
SELECT
  segment,
  replicate,
  bin,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count(label) - count_if(label) AS BIGINT) AS n_negative,
  CAST(count(label) AS BIGINT) AS n,
  CAST(count_if(is_outside) AS BIGINT) AS n_outside,
  CAST(count(label) AS DECIMAL(38, 15)) AS weights,
  CAST(count(label) AS DECIMAL(38, 15)) AS squares,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS first,
  CAST(sum(CAST(log_likelihood AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS weighted,
  CAST(sum(CAST(log_likelihood * log_likelihood AS DECIMAL(19, 15))) AS DECIMAL(38, 15)) AS second,
  CAST(sum(CAST(distance * distance AS DECIMAL(18, 15))) AS DECIMAL(38, 15)) AS squared_errors,
  min(score) AS lowest,
  max(score) AS highest
FROM (
  SELECT
    segment,
    replicate,
    bin,
    score,
    label,
    is_outside,
    ln(abs(clipped - CAST(NOT label AS DOUBLE))) AS log_likelihood,
    CASE WHEN is_outside THEN 0 ELSE abs(score - CAST(label AS DOUBLE)) END AS distance
  FROM (
    SELECT
      segment,
      replicate,
      bin,
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
        bin,
        score,
        label,
        abs(score - CAST('0.5' AS DOUBLE)) < CAST('0.49999999999999' AS DOUBLE) AS is_inner
      FROM (
        SELECT
          segment,
          replicate,
          bin,
          CASE WHEN NOT bin IS NULL THEN score END AS score,
          label
        FROM predictions
      ) AS scored
    ) AS placed
  ) AS probabilities
) AS losses
GROUP BY segment, replicate, bin
