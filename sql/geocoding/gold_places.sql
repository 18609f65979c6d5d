-- grain: one row per gold mention
-- reads: gold_read (kept, mention_id, segment, doc_id, start, end, text, latitude, longitude, cluster_key),
--   replicates (cluster, replicate)
-- params: none
-- caution: cluster_key is the column whose values are independent; without intervals all are in replicate 0
SELECT
  g.mention_id,
  g.segment,
  g.doc_id,
  g.start,
  g."end",
  g.text,
  g.latitude,
  g.longitude,
  CAST(coalesce(c.replicate, 0) AS SMALLINT) AS replicate
FROM gold_read AS g
LEFT JOIN replicates AS c ON g.cluster_key = c.cluster
WHERE g.kept
