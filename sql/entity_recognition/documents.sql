-- grain: one row per segment, replicate and document that has a mention
-- reads: mentions (segment, replicate, doc_id, score, is_gold, is_predicted)
-- params: $lowest_score
-- caution: counts of the lowest threshold; predictions without a score have the score 0, and every score is retrieved
SELECT
  segment,
  replicate,
  doc_id,
  CAST(count_if(is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold AND is_predicted AND score >= $lowest_score) AS BIGINT) AS fp,
  CAST(count_if(is_gold) AS BIGINT) AS n_gold
FROM mentions
GROUP BY segment, replicate, doc_id
