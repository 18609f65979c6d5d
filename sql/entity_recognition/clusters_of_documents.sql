-- grain: one row per document, in the order of their numbers
-- reads: documents (doc_id, _document), documents_read (passes_where, doc_id, cluster_key)
-- params: none
-- caution: as document_ids.sql, where documents lie in clusters
SELECT
  d.doc_id,
  r.cluster_key AS cluster
FROM documents AS d
INNER JOIN documents_read AS r ON d.doc_id = r.doc_id
WHERE r.passes_where
ORDER BY d._document
