-- grain: one row per segment and query with judged documents
-- reads: judged_queries (segment, query_id, n_relevant, n_nonrelevant)
-- params: none
-- segment: judgements
-- caution: also queries for which nothing was retrieved
SELECT
  segment,
  query_id,
  n_relevant,
  n_nonrelevant
FROM judged_queries
