-- grain: one row
-- reads: articles (article_time)
-- params: none
-- caution: without articles both times are NULL
SELECT
  min(article_time) AS first_time,
  max(article_time) AS last_time
FROM articles
