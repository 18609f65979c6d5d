-- grain: one row per segment, replicate and document with a gold mention
-- reads: mentions (segment, replicate, doc_id, is_gold)
-- params: none
-- caution: goes with documents_by_score.sql, which knows predictions only
SELECT
  segment,
  replicate,
  doc_id,
  CAST(count(*) AS BIGINT) AS n_gold
FROM mentions
WHERE is_gold
GROUP BY segment, replicate, doc_id
