-- grain: one row per status of a prediction
-- reads: predicted_read (passes_where, fault, doc_id), documents (doc_id), corpus_read (passes_where, doc_id)
-- params: none
-- caution: as accounting.sql, where only some of the listed documents were judged
SELECT
  CASE
    WHEN NOT predicted_read.passes_where THEN 'where'
    WHEN predicted_read.fault IS NOT NULL THEN predicted_read.fault
    WHEN corpus.doc_id IS NULL THEN 'unlisted_document'
    WHEN documents.doc_id IS NULL THEN 'not_judged'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predicted_read
LEFT JOIN documents ON predicted_read.doc_id = documents.doc_id
LEFT JOIN (
  SELECT doc_id
  FROM corpus_read
  WHERE passes_where
) AS corpus ON predicted_read.doc_id = corpus.doc_id
GROUP BY 1
ORDER BY 1
