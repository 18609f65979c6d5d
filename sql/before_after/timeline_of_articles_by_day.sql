-- grain: one row per article
-- reads: articles (article_time, segment)
-- params: none
-- caution: days as in pairs_with_days.sql
SELECT
  segment,
  article_time,
  CAST(
    (CAST(floor(CAST(article_time AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) + 64000000) % 64
    AS SMALLINT
  ) AS second_replicate
FROM articles
