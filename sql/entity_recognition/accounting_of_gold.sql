-- grain: one row per status of a gold mention
-- reads: gold_read (passes_where, doc_id), documents (doc_id)
-- params: none
-- caution: missing values have been refused before
SELECT
  CASE
    WHEN NOT gold_read.passes_where THEN 'where'
    WHEN documents.doc_id IS NULL THEN 'unlisted_document'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM gold_read
LEFT JOIN documents ON gold_read.doc_id = documents.doc_id
GROUP BY 1
ORDER BY 1
