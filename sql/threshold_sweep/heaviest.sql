-- grain: one row per segment and replicate
-- reads: evaluated_predictions (segment, replicate, label, weight)
-- params: none
-- caution: the largest values do not add up, so every grouping is counted by itself; rows whose score is invalid count;
--          the lightest is 1000000, the most that a weight may be, where no row of the label has a weight above 0
SELECT
  segment,
  replicate,
  max(CASE WHEN label THEN weight ELSE CAST('0.0' AS DOUBLE) END) AS heaviest_positive,
  max(CASE WHEN label THEN CAST('0.0' AS DOUBLE) ELSE weight END) AS heaviest_negative,
  min(CASE WHEN label AND weight > 0 THEN weight ELSE CAST('1000000.0' AS DOUBLE) END) AS lightest_positive,
  min(CASE WHEN NOT label AND weight > 0 THEN weight ELSE CAST('1000000.0' AS DOUBLE) END) AS lightest_negative
FROM evaluated_predictions
WHERE label IS NOT NULL
GROUP BY segment, replicate
