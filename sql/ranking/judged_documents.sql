-- grain: one row per judged document of a query
-- reads: relevance_read (passes_where, segment, query_id, doc_id, relevance)
-- params: none
-- segment: relevance
-- keep: it is read often
-- caution: whether it was retrieved or not
SELECT
  segment,
  query_id,
  doc_id,
  relevance
FROM relevance_read
WHERE passes_where
