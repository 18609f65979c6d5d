-- grain: one row per segment, replicate, document and bin
-- reads: scored_mentions (segment, replicate, bin, doc_id, score, is_gold, is_predicted)
-- params: none
-- caution: for averages over documents at every threshold; as predictions_by_score.sql
SELECT
  segment,
  replicate,
  bin,
  doc_id,
  CAST(count_if(is_gold) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold) AS BIGINT) AS fp,
  min(score) AS lowest,
  max(score) AS highest
FROM scored_mentions
WHERE is_predicted
GROUP BY segment, replicate, bin, doc_id
