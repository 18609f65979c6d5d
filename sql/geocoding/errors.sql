-- grain: one row per gold mention
-- reads: toponyms (segment, replicate, distance_km, is_gold)
-- params: none
-- caution: NULL where the mention is not located
SELECT
  segment,
  replicate,
  distance_km
FROM toponyms
WHERE is_gold
