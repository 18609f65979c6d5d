-- grain: one row per segment, replicate and level
-- reads: gold_pairs (segment, replicate, matcher, article_id, is_gold)
-- params: none
-- caution: what there is to find, whether the matcher stored it or not
SELECT
  segment,
  replicate,
  level,
  CAST(count(*) AS BIGINT) AS n_gold
FROM (
  SELECT
    segment,
    replicate,
    'match' AS level
  FROM gold_pairs
  WHERE is_gold
  UNION ALL
  SELECT
    segment,
    min(replicate) AS replicate,
    'article' AS level
  FROM gold_pairs
  WHERE is_gold
  GROUP BY segment, matcher, article_id
) AS items
GROUP BY segment, replicate, level
