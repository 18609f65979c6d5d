-- grain: one row per document
-- reads: explained_rows (doc_id, score, is_gold, is_predicted)
-- params: $lowest_score
-- caution: documents without a mention have no row
SELECT
  doc_id,
  CAST(count_if(is_gold AND is_retrieved) AS BIGINT) AS tp,
  CAST(count_if(is_retrieved AND NOT is_gold) AS BIGINT) AS fp,
  CAST(count_if(is_gold AND NOT is_retrieved) AS BIGINT) AS fn
FROM (
  SELECT
    doc_id,
    is_gold,
    coalesce(is_predicted AND score >= $lowest_score, FALSE) AS is_retrieved
  FROM explained_rows
) AS outcomes
GROUP BY doc_id
ORDER BY doc_id
