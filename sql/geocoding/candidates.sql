-- grain: one row per predicted place that can be aligned
-- reads: predicted_read (passes_where, fault, mention_id, segment, latitude, longitude, rank),
--   gold_places (mention_id, latitude, longitude)
-- params: none
-- segment: systems
-- caution: the great-circle distance by the haversine formula, on a sphere of 6371.0088 km: 12742.0176 is its diameter,
--   the factors of degrees are pi / 360 and pi / 180. Rounding may take the square above 1, and latitudes that a check
--   is about to refuse may take it below 0, so it is clipped. NULL where a coordinate is
SELECT
  mention_id,
  segment,
  latitude,
  longitude,
  rank,
  is_aligned,
  CAST('12742.0176' AS DOUBLE) * asin(
    sqrt(
      CASE
        WHEN square > CAST('1.0' AS DOUBLE) THEN CAST('1.0' AS DOUBLE)
        WHEN square < CAST('0.0' AS DOUBLE) THEN CAST('0.0' AS DOUBLE)
        ELSE square
      END
    )
  ) AS distance_km
FROM (
  SELECT
    p.mention_id,
    p.segment,
    p.latitude,
    p.longitude,
    p.rank,
    NOT g.mention_id IS NULL AS is_aligned,
    sin((p.latitude - g.latitude) * CAST('0.008726646259971648' AS DOUBLE))
    * sin((p.latitude - g.latitude) * CAST('0.008726646259971648' AS DOUBLE))
    + cos(g.latitude * CAST('0.017453292519943295' AS DOUBLE))
    * cos(p.latitude * CAST('0.017453292519943295' AS DOUBLE))
    * sin((p.longitude - g.longitude) * CAST('0.008726646259971648' AS DOUBLE))
    * sin((p.longitude - g.longitude) * CAST('0.008726646259971648' AS DOUBLE)) AS square
  FROM predicted_read AS p
  LEFT JOIN gold_places AS g ON p.mention_id = g.mention_id
  WHERE p.passes_where AND p.fault IS NULL
) AS beside_gold
