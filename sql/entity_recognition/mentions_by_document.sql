-- grain: one row per mention, in the order of documents
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted)
-- params: none
-- caution: rows of one document come in any order
SELECT
  segment,
  replicate,
  _document,
  score,
  is_gold,
  is_predicted
FROM mentions
ORDER BY _document
