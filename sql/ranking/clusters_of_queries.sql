-- grain: one row per query, and per cluster of it
-- reads: input_read (passes_where, query_id, query_cluster)
-- params: none
-- keep: a check reads it, too
-- caution: a query in several clusters has several rows, which a check finds
SELECT DISTINCT
  query_id,
  query_cluster AS cluster
FROM input_read
WHERE passes_where AND query_id IS NOT NULL
