-- grain: one row per gold mention
-- reads: toponyms (segment, mention_id, doc_id, gold_start, gold_end, gold_text, gold_latitude, gold_longitude,
--   predicted_latitude, predicted_longitude, distance_km, is_gold, is_predicted)
-- params: $lowest_score
-- caution: $lowest_score is minus the largest distance that is within the smallest tolerance
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
  CASE
    WHEN distance_km IS NULL THEN 'fn'
    WHEN -distance_km >= $lowest_score THEN 'tp'
    ELSE 'fp'
  END AS outcome,
  CASE
    WHEN NOT is_predicted THEN 'no_prediction'
    WHEN distance_km IS NULL THEN 'no_coordinates'
  END AS not_located
FROM toponyms
WHERE is_gold
