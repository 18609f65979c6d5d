-- grain: one row per predicted mention that takes part
-- reads: predicted_read (passes_where, fault, doc_id, segment), documents (doc_id, segment, replicate, _document),
--   systems (segment, _system)
-- params: none
-- caution: segment stands for the columns that matching and results need, by relation; those of systems are among the
--   columns of predictions
SELECT
  p.segment,
  d.segment,
  d.replicate,
  d._document,
  s._system
FROM predicted_read AS p
INNER JOIN documents AS d ON p.doc_id = d.doc_id
INNER JOIN systems AS s ON p.segment IS NOT DISTINCT FROM s.segment
WHERE p.passes_where AND p.fault IS NULL
