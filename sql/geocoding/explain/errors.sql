-- grain: one row per gold mention
-- reads: explained_rows (doc_id, distance_km, is_gold)
-- params: none
-- caution: distances are NULL where the mention is not located
SELECT
  doc_id,
  distance_km
FROM explained_rows
WHERE is_gold
ORDER BY doc_id NULLS LAST, distance_km NULLS LAST
