-- grain: one row per gold mention that is located
-- reads: explained_rows (segment, mention_id, doc_id, gold_start, gold_end, gold_text, gold_latitude, gold_longitude,
--   predicted_latitude, predicted_longitude, distance_km, is_gold)
-- params: $lowest_score, $tolerance_km
-- caution: in the order of the distance from the tolerance
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
  distance_km,
  -distance_km >= $lowest_score AS is_within
FROM explained_rows
WHERE is_gold AND distance_km IS NOT NULL
ORDER BY abs(distance_km - $tolerance_km), distance_km, mention_id, doc_id, gold_start, gold_end, segment
