-- grain: one row per retrieved document of a ranking
-- reads: ranking_read (passes_where, segment, query_id, doc_id, rank, relevance)
-- params: none
-- caution: as ranked_documents.sql, where documents come in the order of ranks
SELECT
  segment,
  CAST(0 AS SMALLINT) AS replicate,
  query_id,
  doc_id,
  relevance,
  -rank AS _value
FROM ranking_read
WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL AND rank IS NOT NULL
