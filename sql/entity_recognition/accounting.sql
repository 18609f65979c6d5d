-- grain: one row per status of a prediction
-- reads: predicted_read (passes_where, fault, doc_id), documents (doc_id)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT predicted_read.passes_where THEN 'where'
    WHEN predicted_read.fault IS NOT NULL THEN predicted_read.fault
    WHEN documents.doc_id IS NULL THEN 'unlisted_document'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predicted_read
LEFT JOIN documents ON predicted_read.doc_id = documents.doc_id
GROUP BY 1
ORDER BY 1
