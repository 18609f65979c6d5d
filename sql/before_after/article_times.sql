-- grain: one row per article
-- reads: articles_read (passes_where, article_id, article_time)
-- params: none
-- caution: an article that is listed twice is a fault, which a check finds; until then it has its earliest time
SELECT
  article_id,
  min(article_time) AS article_time
FROM articles_read
WHERE passes_where
GROUP BY article_id
