-- grain: one row per cluster
-- reads: explained_rows (cluster_key, score, label, weight)
-- params: $lowest_score
-- caution: weights are 1 where rows have none
SELECT
  cluster_key AS cluster,
  CAST(count_if(score >= $lowest_score AND label) AS BIGINT) AS tp,
  CAST(count_if(score >= $lowest_score AND NOT label) AS BIGINT) AS fp,
  CAST(count_if(score < $lowest_score AND label) AS BIGINT) AS fn,
  CAST(count_if(score < $lowest_score AND NOT label) AS BIGINT) AS tn,
  sum(CAST(CASE WHEN score >= $lowest_score AND label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS tp_weight,
  sum(CAST(CASE WHEN score >= $lowest_score AND NOT label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS fp_weight,
  sum(CAST(CASE WHEN score < $lowest_score AND label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS fn_weight,
  sum(CAST(CASE WHEN score < $lowest_score AND NOT label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS tn_weight
FROM explained_rows
GROUP BY cluster_key
ORDER BY cluster_key
