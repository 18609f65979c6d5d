-- grain: one row per ranking: segment and query
-- reads: rankings (segment, replicate, query_id, _ranking, n_retrieved)
-- params: none
-- caution: a query that was not retrieved has none
SELECT
  segment,
  replicate,
  query_id,
  _ranking,
  n_retrieved
FROM rankings
