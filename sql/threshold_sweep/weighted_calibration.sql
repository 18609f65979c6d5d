-- grain: one row per segment, replicate and cell of the probability
-- reads: probabilities (segment, replicate, cell, probability, label, weight)
-- params: none
-- caution: as calibration.sql, with sums of weights; what begins with heavy_ has squared weights, from which follows how
--   much weighted sums vary; test_variance has squared distances of labels, because weights may depend on labels;
--   test_expected_ is what it is if scores are probabilities, to be multiplied by the mean weight of true and false rows
SELECT
  segment,
  replicate,
  cell,
  CAST(count_if(label) AS BIGINT) AS n_positive,
  CAST(count_if(NOT label) AS BIGINT) AS n_negative,
  sum(CAST(weight * probability AS DECIMAL(38, 15))) AS scores,
  sum(CAST(CASE WHEN label THEN weight * probability ELSE 0 END AS DECIMAL(38, 15))) AS scores_positive,
  sum(CAST(weight * probability * probability AS DECIMAL(38, 15))) AS score_squares,
  sum(CAST(weight * weight * squared_error * slope * slope AS DECIMAL(38, 15))) AS test_variance,
  sum(CAST(weight * spread * (1 - probability) * slope * slope AS DECIMAL(38, 15))) AS test_expected_positive,
  sum(CAST(weight * spread * probability * slope * slope AS DECIMAL(38, 15))) AS test_expected_negative,
  sum(CAST(CASE WHEN label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS weight_positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight END AS DECIMAL(38, 15))) AS weight_negative,
  sum(CAST(CASE WHEN label THEN weight * weight ELSE 0 END AS DECIMAL(38, 15))) AS squares_positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight * weight END AS DECIMAL(38, 15))) AS squares_negative,
  sum(CAST(weight * weight * probability AS DECIMAL(38, 15))) AS heavy_scores,
  sum(CAST(CASE WHEN label THEN weight * weight * probability ELSE 0 END AS DECIMAL(38, 15))) AS heavy_scores_positive,
  sum(CAST(weight * weight * probability * probability AS DECIMAL(38, 15))) AS heavy_score_squares
FROM (
  SELECT
    segment,
    replicate,
    cell,
    probability,
    label,
    weight,
    1 - 2 * probability AS slope,
    probability * (1 - probability) AS spread,
    CASE WHEN label THEN (1 - probability) * (1 - probability) ELSE probability * probability END AS squared_error
  FROM probabilities
) AS errors
GROUP BY segment, replicate, cell
