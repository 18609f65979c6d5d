-- grain: one row per gold mention, system and candidate, or per candidate without a gold mention
-- reads: gold_places (mention_id, unit_key, segment, replicate, doc_id, start, end, text, latitude, longitude),
--   systems (segment), candidates (mention_id, unaligned_id, segment, latitude, longitude, rank, is_aligned,
--   distance_km)
-- params: none
-- segment: s of systems, c of systems, g of gold
-- keep: it is read often
-- caution: gold mentions count once for each system, also where it has no candidate; unaligned_id is the mention_id of
--   a candidate with the type that it has in gold; g of the second half has no row, so that its columns are NULL
SELECT
  s.segment,
  g.segment,
  g.replicate,
  g.unit_key AS unit,
  g.mention_id,
  g.doc_id,
  g.start AS gold_start,
  g."end" AS gold_end,
  g.text AS gold_text,
  g.latitude AS gold_latitude,
  g.longitude AS gold_longitude,
  c.latitude AS predicted_latitude,
  c.longitude AS predicted_longitude,
  c.rank,
  c.distance_km,
  TRUE AS is_gold,
  NOT c.mention_id IS NULL AS is_predicted,
  NOT c.latitude IS NULL AS is_located
FROM gold_places AS g
LEFT JOIN systems AS s ON TRUE
LEFT JOIN candidates AS c ON g.mention_id = c.mention_id AND s.segment IS NOT DISTINCT FROM c.segment
UNION ALL
SELECT
  c.segment,
  g.segment,
  CAST(0 AS SMALLINT) AS replicate,
  g.unit_key AS unit,
  c.unaligned_id AS mention_id,
  g.doc_id,
  g.start AS gold_start,
  g."end" AS gold_end,
  g.text AS gold_text,
  g.latitude AS gold_latitude,
  g.longitude AS gold_longitude,
  c.latitude AS predicted_latitude,
  c.longitude AS predicted_longitude,
  c.rank,
  c.distance_km,
  FALSE AS is_gold,
  TRUE AS is_predicted,
  NOT c.latitude IS NULL AS is_located
FROM candidates AS c
LEFT JOIN gold_places AS g ON FALSE
WHERE NOT c.is_aligned
