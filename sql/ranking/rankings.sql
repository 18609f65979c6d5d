-- grain: one row per ranking: segment and query
-- reads: judged_queries (segment, query_id), retrieved (segment, replicate, query_id, _ranking, n_retrieved)
-- params: none
-- segment: p of ranking, o of relevance
-- keep: it is read often
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
