-- grain: one row per listed document
-- reads: documents_read (passes_where, doc_id, segment, cluster_key), replicates (cluster, replicate)
-- params: none
-- segment: d of documents
-- keep: documents have numbers, which all that reads them must share
-- caution: _document numbers them in the order of their ids
SELECT
  d.doc_id,
  d.segment,
  r.replicate,
  CAST(row_number() OVER (ORDER BY d.doc_id) AS BIGINT) AS _document
FROM documents_read AS d
INNER JOIN replicates AS r ON d.cluster_key = r.cluster
WHERE d.passes_where
