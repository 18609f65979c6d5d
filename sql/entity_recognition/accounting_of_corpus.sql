-- grain: one row per status of a listed document
-- reads: corpus_read (passes_where, doc_id), documents (doc_id)
-- params: none
-- caution: where only some of them were judged
SELECT
  CASE
    WHEN NOT corpus_read.passes_where THEN 'where'
    WHEN documents.doc_id IS NULL THEN 'not_judged'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM corpus_read
LEFT JOIN documents ON corpus_read.doc_id = documents.doc_id
GROUP BY 1
ORDER BY 1
