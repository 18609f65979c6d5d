-- grain: one row per segment and query with judged documents
-- reads: judged_queries (segment, query_id, n_relevant, n_nonrelevant)
-- params: none
-- caution: segment stands for the grouping columns of the input that has the judgements
SELECT
  segment,
  query_id,
  n_relevant,
  n_nonrelevant
FROM judged_queries
