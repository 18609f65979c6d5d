-- grain: one row per document that people judged
-- reads: corpus_read (passes_where, doc_id, segment), judged_documents (doc_id)
-- params: none
-- caution: stands for the listed documents, where only those of a sheet are judged
SELECT
  corpus_read.passes_where,
  corpus_read.doc_id,
  corpus_read.segment
FROM corpus_read
INNER JOIN judged_documents ON corpus_read.doc_id = judged_documents.doc_id
