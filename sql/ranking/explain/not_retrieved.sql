-- grain: one row per relevant document of a ranked query that was not retrieved
-- reads: explained_rows (segment, query_id, doc_id), judged_documents (query_id, doc_id, relevance)
-- params: $relevance_level
-- caution: queries without any retrieved document have no ranking, and no row here
SELECT
  q.segment,
  q.query_id,
  o.doc_id,
  o.relevance
FROM (
  SELECT DISTINCT
    segment,
    query_id
  FROM explained_rows
) AS q
INNER JOIN judged_documents AS o ON q.query_id = o.query_id
LEFT JOIN explained_rows AS r
  ON q.query_id = r.query_id AND o.doc_id = r.doc_id AND q.segment IS NOT DISTINCT FROM r.segment
WHERE o.relevance >= $relevance_level AND r.query_id IS NULL
ORDER BY o.relevance DESC, q.query_id, q.segment, o.doc_id
