-- grain: one row per relevant document that was retrieved
-- reads: explained_rows (segment, query_id, doc_id, rank, value, relevance)
-- params: $relevance_level
-- caution: those that are ranked last come first
SELECT
  segment,
  query_id,
  doc_id,
  rank,
  value,
  relevance
FROM explained_rows
WHERE relevance >= $relevance_level
ORDER BY rank DESC, query_id, segment, doc_id
