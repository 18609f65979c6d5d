-- grain: one row per mention, and one per listed document
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted),
--   listed_documents (segment, replicate, _document)
-- params: none
-- caution: stands for mentions where a document may be without any; the row of a document, which is neither gold nor
--   predicted, then stands for it
SELECT
  segment,
  replicate,
  _document,
  score,
  is_gold,
  is_predicted
FROM mentions
UNION ALL
SELECT
  segment,
  replicate,
  _document,
  CAST('0' AS DOUBLE) AS score,
  false AS is_gold,
  false AS is_predicted
FROM listed_documents
