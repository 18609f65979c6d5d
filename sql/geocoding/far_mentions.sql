-- grain: one row per gold mention that is far from its match
-- reads: toponyms (is_gold, distance_km, predicted_latitude, predicted_longitude, gold_latitude, gold_longitude)
-- params: $farther_km
-- caution: to see whether they are near with latitude and longitude exchanged
SELECT
  predicted_latitude,
  predicted_longitude,
  gold_latitude,
  gold_longitude
FROM toponyms
WHERE is_gold AND distance_km > $farther_km
