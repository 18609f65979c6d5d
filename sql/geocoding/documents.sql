-- grain: one row per gold mention
-- reads: toponyms (segment, unit_key, distance_km, is_gold)
-- params: none
-- caution: as errors.sql, with what is independent: the cluster, the document or the mention; distances are NULL where the
--   mention is not located
SELECT
  segment,
  unit_key AS unit,
  distance_km
FROM toponyms
WHERE is_gold
