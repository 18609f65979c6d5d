-- grain: one row per retrieved document that is not relevant
-- reads: explained_rows (segment, query_id, doc_id, rank, value, relevance)
-- params: $relevance_level
-- caution: those that are ranked first come first; relevance is NULL where a document is not judged
SELECT
  segment,
  query_id,
  doc_id,
  rank,
  value,
  relevance
FROM explained_rows
WHERE relevance IS NULL OR relevance < $relevance_level
ORDER BY rank, query_id, segment, doc_id
