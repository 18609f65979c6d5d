-- grain: one row per status of a ranked document, where documents come in the order of ranks
-- reads: ranking_read (passes_where, query_id, doc_id, rank)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN query_id IS NULL THEN 'null_query_id'
    WHEN doc_id IS NULL THEN 'null_doc_id'
    WHEN rank IS NULL THEN 'null_rank'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM ranking_read
GROUP BY 1
ORDER BY 1
