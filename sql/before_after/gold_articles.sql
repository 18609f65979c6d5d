-- grain: one row per segment, replicate and bin
-- reads: gold_pairs (segment, replicate, bin, matcher, article_id, score, is_gold)
-- params: none
-- caution: an article counts once in a segment for each matcher, by its best pair, whichever event that pair is with, so
--   segments do not add up; an article whose gold event the matcher missed is gold all the same
SELECT
  segment,
  replicate,
  bin,
  'article' AS level,
  CAST(count(*) FILTER (WHERE is_gold) AS BIGINT) AS tp,
  CAST(count(*) FILTER (WHERE NOT is_gold) AS BIGINT) AS fp,
  min(score) AS lowest,
  max(score) AS highest
FROM (
  SELECT
    segment,
    min(replicate) AS replicate,
    max(bin) AS bin,
    max(score) AS score,
    count(*) FILTER (WHERE is_gold) > 0 AS is_gold
  FROM gold_pairs
  GROUP BY segment, matcher, article_id
) AS articles
GROUP BY segment, replicate, bin
