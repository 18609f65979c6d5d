-- grain: one row per prediction that where keeps
-- reads: predictions_read (passes_where, segment, score_given, label, weight, cluster_key), replicates (cluster, replicate)
-- params: none
-- caution: as evaluated_predictions.sql, where clusters are independent
SELECT
  p.segment,
  r.replicate,
  p.score_given AS score,
  p.label,
  p.weight
FROM predictions_read AS p
INNER JOIN replicates AS r ON p.cluster_key = r.cluster
WHERE p.passes_where
