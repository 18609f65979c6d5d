-- grain: one row per article
-- reads: articles (article_id, article_time)
-- params: none
-- caution: stands for the replicates of articles where days are the second parent; days as in pairs_with_days.sql
SELECT
  article_id AS cluster,
  CAST(
    (CAST(floor(CAST(article_time AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) + 64000000) % 64
    AS SMALLINT
  ) AS replicate
FROM articles
