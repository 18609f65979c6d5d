-- grain: one row per document of a ranking that has labels itself
-- reads: ranking_read (passes_where, segment, query_id, doc_id, relevance)
-- params: none
-- segment: ranking
-- caution: also documents without a valid score, which are known but not retrieved
SELECT
  segment,
  query_id,
  doc_id,
  relevance
FROM ranking_read
WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL
