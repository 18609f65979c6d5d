-- grain: one row per retrieved document of a ranking: the one with the highest rank
-- reads: ranking_read (passes_where, segment, query_id, doc_id, rank, relevance)
-- params: none
-- caution: as distinct_documents.sql, where documents come in the order of ranks
SELECT
  segment,
  replicate,
  query_id,
  doc_id,
  relevance,
  -rank AS _value
FROM (
  SELECT
    segment,
    CAST(0 AS SMALLINT) AS replicate,
    query_id,
    doc_id,
    relevance,
    rank,
    row_number() OVER (PARTITION BY segment, query_id, doc_id ORDER BY rank DESC NULLS LAST) AS rank_in_key
  FROM ranking_read
  WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL AND rank IS NOT NULL
) AS numbered
WHERE rank_in_key = 1 OR segment IS NULL
