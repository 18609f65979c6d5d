-- grain: one row per article
-- reads: articles (article_id, article_time, segment), replicates_of_articles (cluster, replicate)
-- params: none
-- caution: the time is in microseconds
SELECT
  articles.segment,
  articles.article_time,
  replicates_of_articles.replicate AS second_replicate
FROM articles
INNER JOIN replicates_of_articles ON articles.article_id = replicates_of_articles.cluster
