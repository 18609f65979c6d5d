-- grain: one row per document
-- reads: explained_rows (doc_id, distance_km, is_gold)
-- params: $lowest_score
-- caution: a place that is too far away is a false positive, and its mention is missed, too; mentions without a document
--   have a row of their own
SELECT
  doc_id,
  CAST(count_if(is_gold AND coalesce(-distance_km >= $lowest_score, FALSE)) AS BIGINT) AS tp,
  CAST(count_if(is_gold AND coalesce(-distance_km < $lowest_score, FALSE)) AS BIGINT) AS fp,
  CAST(count_if(is_gold AND NOT coalesce(-distance_km >= $lowest_score, FALSE)) AS BIGINT) AS fn
FROM explained_rows
WHERE is_gold
GROUP BY doc_id
ORDER BY doc_id
