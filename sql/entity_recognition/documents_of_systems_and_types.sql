-- grain: one row per document and system
-- reads: documents (segment, replicate, _document), systems (segment), gold_read (type)
-- params: none
-- caution: as documents_of_systems.sql, where mentions are grouped by type; a document has none: gold_read, of which no
--   row is joined, gives NULL of the right type
SELECT
  s.segment,
  d.segment,
  d.replicate,
  d._document,
  g.type AS "by:type"
FROM documents AS d
LEFT JOIN systems AS s ON TRUE
LEFT JOIN gold_read AS g ON FALSE
