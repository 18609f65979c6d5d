-- grain: one row per document, in the order of their numbers
-- reads: documents (doc_id, _document)
-- params: none
-- caution: the first document has the number 1
SELECT
  doc_id
FROM documents
ORDER BY _document
