-- grain: one row per document of a ranking that has labels itself: the one with the highest score
-- reads: ranking_read (passes_where, segment, query_id, doc_id, score, relevance)
-- params: none
-- segment: ranking
-- caution: as labelled_ranking.sql; a key with NULL is not known, so such documents never repeat
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
    row_number() OVER (PARTITION BY segment, query_id, doc_id ORDER BY score DESC NULLS LAST) AS rank_in_key
  FROM ranking_read
  WHERE passes_where AND query_id IS NOT NULL AND doc_id IS NOT NULL
) AS numbered
WHERE rank_in_key = 1 OR segment IS NULL
