-- grain: one row per segment, replicate and document
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted), listed_documents (segment, replicate, _document)
-- params: $lowest_score
-- caution: as documents.sql; a listed document counts without any mention, too
SELECT
  segment,
  replicate,
  _document,
  CAST(count_if(is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS fp,
  CAST(count_if(is_gold) AS BIGINT) AS n_gold
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
    NULL AS score,
    false AS is_gold,
    false AS is_predicted
  FROM listed_documents
) AS documents_and_mentions
GROUP BY segment, replicate, _document
