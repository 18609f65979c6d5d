-- grain: one row per judged document of a ranking, with the places it takes: its rank
-- reads: labelled_documents (segment, query_id, doc_id, _value, relevance)
-- params: $relevance_level
-- caution: equal values come in descending order of the document's name as text, byte by byte, as in trec_eval
SELECT
  segment,
  query_id,
  _place - 1 AS n_before,
  1 AS n_documents,
  CASE WHEN relevance >= $relevance_level THEN 1 ELSE 0 END AS n_hits,
  CASE WHEN relevance < $relevance_level THEN 1 ELSE 0 END AS n_misses
FROM (
  SELECT
    segment,
    query_id,
    relevance,
    CAST(
      row_number() OVER (
        PARTITION BY segment, query_id
        ORDER BY _value DESC, CAST(doc_id AS TEXT) DESC
      ) AS BIGINT
    ) AS _place
  FROM labelled_documents
) AS placed
WHERE relevance >= 0
ORDER BY segment, query_id, n_before
