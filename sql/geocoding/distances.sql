-- grain: one row per gold mention, or prediction without one
-- reads: toponyms (segment, replicate, is_gold, distance_km)
-- params: none
-- caution: the score is minus the distance, so that "at least" means "within"; NULL where the mention is not located
SELECT
  segment,
  replicate,
  is_gold,
  -distance_km AS score
FROM toponyms
