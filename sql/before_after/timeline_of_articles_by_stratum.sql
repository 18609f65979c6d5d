-- grain: one row per article
-- reads: articles (article_time, segment, article_label)
-- params: none
-- caution: article_label is the text of the article's values, its weekday, hour and volume among them
SELECT
  segment,
  article_time,
  article_label AS article_stratum
FROM articles
