-- grain: one row per gold pair that is not retrieved
-- reads: explained_gold (segment, score, is_gold)
-- params: $lowest_score
-- caution: the score is NULL where the matcher did not store the pair; these come first, then the lowest scores
SELECT
  segment,
  score
FROM explained_gold
WHERE is_gold AND (score IS NULL OR score < $lowest_score)
ORDER BY score NULLS FIRST, segment
