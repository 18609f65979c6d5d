-- grain: one row per ranking: segment and query
-- reads: retrieved (segment, replicate, query_id, _ranking, n_retrieved), judged_queries (segment, query_id)
-- params: none
-- caution: judgements are an input of their own, whose grouping columns are those of the queries; they are NULL where a
--   query has no judged document
SELECT
  p.segment,
  o.segment,
  p.replicate,
  p.query_id,
  p._ranking,
  p.n_retrieved
FROM retrieved AS p
LEFT JOIN judged_queries AS o ON p.query_id = o.query_id
