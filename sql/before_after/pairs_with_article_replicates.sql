-- grain: one row per pair that takes part
-- reads: used_pairs (article_id, replicate, score, lag, segment), replicates_of_articles (cluster, replicate)
-- params: none
-- caution: pairs of an article that is not listed are in replicate 0
SELECT
  used_pairs.segment,
  used_pairs.replicate,
  used_pairs.score,
  used_pairs.lag,
  coalesce(replicates_of_articles.replicate, 0) AS second_replicate
FROM used_pairs
LEFT JOIN replicates_of_articles ON used_pairs.article_id = replicates_of_articles.cluster
