-- grain: one row per mention, and one per listed document, in the order of documents
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted),
--   listed_documents (segment, replicate, _document)
-- params: none
-- caution: as mentions_by_document.sql; the row of a document, which is neither gold nor predicted, stands for it where
--   it has no mention
SELECT
  segment,
  replicate,
  _document,
  score,
  is_gold,
  is_predicted
FROM (
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
) AS documents_and_mentions
ORDER BY _document
