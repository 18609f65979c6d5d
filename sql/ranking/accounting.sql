-- grain: one row per status of a ranked document
-- reads: ranking_read (passes_where, score_state, query_id, doc_id)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN query_id IS NULL THEN 'null_query_id'
    WHEN doc_id IS NULL THEN 'null_doc_id'
    WHEN score_state IS NOT NULL THEN score_state
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM ranking_read
GROUP BY 1
ORDER BY 1
