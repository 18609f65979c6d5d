-- grain: one row per prediction that where keeps
-- reads: predictions_read (passes_where, segment, score_given, label, weight, cluster_key, second_cluster_key),
--   replicates (cluster, replicate), replicates_of_second_parents (cluster, replicate)
-- params: none
-- caution: as evaluated_predictions.sql, where rows are independent only if they share neither parent
SELECT
  p.segment,
  r.replicate,
  s.replicate AS second_replicate,
  p.score_given AS score,
  p.label,
  p.weight
FROM predictions_read AS p
INNER JOIN replicates AS r ON p.cluster_key = r.cluster
INNER JOIN replicates_of_second_parents AS s ON p.second_cluster_key = s.cluster
WHERE p.passes_where
