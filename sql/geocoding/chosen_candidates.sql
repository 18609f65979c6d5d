-- grain: one row per mention and system
-- reads: candidates (mention_id, segment, latitude, longitude, rank, is_aligned, distance_km, preference)
-- params: none
-- segment: systems
-- caution: preference is the rank or the distance, whose lowest is chosen; ties go to the lower latitude and longitude
SELECT
  mention_id,
  segment,
  latitude,
  longitude,
  rank,
  is_aligned,
  distance_km
FROM candidates
QUALIFY row_number() OVER (PARTITION BY mention_id, segment ORDER BY preference, latitude, longitude) = 1
