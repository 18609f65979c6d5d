-- grain: one row per predicted place that can be aligned
-- reads: predicted_read (passes_where, fault, mention_id, segment, latitude, longitude, rank), gold_places (mention_id)
-- params: none
-- segment: p of systems
-- caution: as candidates, for distances that SQL cannot tell: those on the ellipsoid
SELECT
  p.mention_id,
  p.segment,
  p.latitude,
  p.longitude,
  p.rank,
  NOT g.mention_id IS NULL AS is_aligned,
  CAST(NULL AS DOUBLE) AS distance_km
FROM predicted_read AS p
LEFT JOIN gold_places AS g ON p.mention_id = g.mention_id
WHERE p.passes_where AND p.fault IS NULL
