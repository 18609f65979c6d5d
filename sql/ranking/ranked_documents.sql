-- grain: one row per retrieved document of a ranking
-- reads: ranking_read (passes_where, segment, query_id, doc_id, value, relevance)
-- params: none
-- segment: ranking
-- caution: value is the score, or the rank below zero: the higher _value comes first; relevance is NULL where judgements
--   are an input of their own
SELECT
  segment,
  CAST(0 AS SMALLINT) AS replicate,
  query_id,
  doc_id,
  relevance,
  value AS _value
FROM ranking_read
WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL AND value IS NOT NULL
