-- grain: one row per segment, query and relevance of its judged documents
-- reads: judged_documents (segment, query_id, relevance)
-- params: none
-- segment: judgements
-- caution: whether they were retrieved or not: the best order, by which DCG is divided, has all of them; a negative
--   relevance means not judged, as in trec_eval
SELECT
  segment,
  query_id,
  relevance,
  CAST(count(*) AS BIGINT) AS n_documents
FROM judged_documents
WHERE relevance >= 0
GROUP BY segment, query_id, relevance
