-- grain: one row per gold mention of a document and system
-- reads: gold_read (passes_where, doc_id, segment), documents (doc_id, segment, replicate, _document), systems (segment, _system)
-- params: none
-- caution: segment stands for the columns that matching and results need, by relation; without any prediction there is
--   no system, and gold mentions are those of system 0
SELECT
  p.segment,
  s.segment,
  d.segment,
  d.replicate,
  d._document,
  CAST(coalesce(s._system, 0) AS BIGINT) AS _system
FROM gold_read AS p
INNER JOIN documents AS d ON p.doc_id = d.doc_id
LEFT JOIN systems AS s ON TRUE
WHERE p.passes_where
