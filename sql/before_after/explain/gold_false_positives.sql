-- grain: one row per retrieved pair of a coded article that is not gold
-- reads: explained_gold (segment, score, is_gold)
-- params: $lowest_score
-- caution: the most confident errors come first
SELECT
  segment,
  score
FROM explained_gold
WHERE NOT is_gold AND score >= $lowest_score
ORDER BY score DESC, segment
