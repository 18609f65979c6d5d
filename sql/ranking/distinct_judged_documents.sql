-- grain: one row per judged document of a query: the one with the highest relevance
-- reads: relevance_read (passes_where, segment, query_id, doc_id, relevance)
-- params: none
-- segment: relevance
-- keep: it is read often
-- caution: a key with NULL is not known, so such documents never repeat
SELECT
  segment,
  query_id,
  doc_id,
  relevance
FROM (
  SELECT
    segment,
    query_id,
    doc_id,
    relevance,
    row_number() OVER (
      PARTITION BY query_id, doc_id
      ORDER BY relevance DESC NULLS LAST, segment DESC NULLS LAST
    ) AS rank_in_key
  FROM relevance_read
  WHERE passes_where
) AS numbered
WHERE rank_in_key = 1 OR query_id IS NULL OR doc_id IS NULL
