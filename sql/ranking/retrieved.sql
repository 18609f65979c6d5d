-- grain: one row per ranking: segment and query
-- reads: ranked_documents (segment, replicate, query_id)
-- params: none
-- caution: only what was retrieved has a row here
SELECT
  segment,
  replicate,
  query_id,
  CAST(count(*) AS BIGINT) AS n_retrieved
FROM ranked_documents
GROUP BY segment, replicate, query_id
