-- grain: one row per segment, replicate and document with a mention
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted)
-- params: $lowest_score
-- caution: counts of the lowest threshold; predictions without a score have the score 0, and every score is retrieved;
--   where a document may be without any mention, documents_listed.sql counts it, too
SELECT
  segment,
  replicate,
  _document,
  CAST(count_if(is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS fp,
  CAST(count_if(is_gold) AS BIGINT) AS n_gold
FROM mentions
GROUP BY segment, replicate, _document
