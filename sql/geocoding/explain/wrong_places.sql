-- grain: one row per gold mention that is located too far away
-- reads: explained_rows (segment, mention_id, doc_id, gold_start, gold_end, gold_text, gold_latitude, gold_longitude,
--   predicted_latitude, predicted_longitude, distance_km, is_gold)
-- params: $lowest_score
-- caution: the farthest come first; $lowest_score is minus the largest distance that is within the tolerance
SELECT
  segment,
  mention_id,
  doc_id,
  gold_start,
  gold_end,
  gold_text,
  gold_latitude,
  gold_longitude,
  predicted_latitude,
  predicted_longitude,
  distance_km
FROM explained_rows
WHERE is_gold AND -distance_km < $lowest_score
ORDER BY distance_km DESC, mention_id, doc_id, gold_start, gold_end, segment
