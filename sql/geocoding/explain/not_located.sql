-- grain: one row per gold mention that is not located
-- reads: explained_rows (segment, mention_id, doc_id, gold_start, gold_end, gold_text, gold_latitude, gold_longitude,
--   distance_km, is_gold, is_predicted)
-- params: none
-- caution: a prediction may be aligned with it and have no coordinates
SELECT
  segment,
  mention_id,
  doc_id,
  gold_start,
  gold_end,
  gold_text,
  gold_latitude,
  gold_longitude,
  CASE WHEN is_predicted THEN 'no_coordinates' ELSE 'no_prediction' END AS not_located
FROM explained_rows
WHERE is_gold AND distance_km IS NULL
ORDER BY mention_id, doc_id, gold_start, gold_end, segment
