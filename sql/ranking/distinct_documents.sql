-- grain: one row per retrieved document of a ranking: the one with the highest score or, without scores, rank
-- reads: ranking_read (passes_where, segment, query_id, doc_id, value, score, relevance)
-- params: none
-- segment: ranking
-- keep: it is read three times
-- caution: as ranked_documents.sql; a key with NULL is not known, so such documents never repeat
SELECT
  segment,
  replicate,
  query_id,
  doc_id,
  relevance,
  _value
FROM (
  SELECT
    segment,
    CAST(0 AS SMALLINT) AS replicate,
    query_id,
    doc_id,
    relevance,
    value AS _value,
    row_number() OVER (PARTITION BY segment, query_id, doc_id ORDER BY score DESC NULLS LAST) AS rank_in_key
  FROM ranking_read
  WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL AND value IS NOT NULL
) AS numbered
WHERE rank_in_key = 1 OR segment IS NULL
