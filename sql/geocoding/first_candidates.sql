-- grain: one row per mention and system
-- reads: candidates (mention_id, segment, latitude, longitude, rank, is_aligned, distance_km)
-- params: none
-- caution: the candidate with the lowest rank; ties go to the lower latitude and longitude
SELECT
  mention_id,
  segment,
  latitude,
  longitude,
  rank,
  is_aligned,
  distance_km
FROM candidates
QUALIFY row_number() OVER (PARTITION BY mention_id, segment ORDER BY rank, latitude, longitude) = 1
