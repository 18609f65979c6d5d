-- grain: one row per segment and query with judged documents
-- reads: judged_documents (segment, query_id, relevance)
-- params: $relevance_level
-- segment: judgements
-- keep: it is read often
-- caution: a negative relevance means not judged, as in trec_eval
SELECT
  segment,
  query_id,
  CAST(count_if(relevance >= $relevance_level) AS BIGINT) AS n_relevant,
  CAST(count_if(relevance >= 0 AND relevance < $relevance_level) AS BIGINT) AS n_nonrelevant
FROM judged_documents
GROUP BY segment, query_id
