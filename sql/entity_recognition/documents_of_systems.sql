-- grain: one row per document and system
-- reads: documents (segment, replicate, _document), systems (segment)
-- params: none
-- caution: without any prediction there is no system, and its grouping columns are NULL
SELECT
  s.segment,
  d.segment,
  d.replicate,
  d._document
FROM documents AS d
LEFT JOIN systems AS s ON TRUE
