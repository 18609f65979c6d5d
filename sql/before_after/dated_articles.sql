-- grain: one row per article
-- reads: articles (article_time, segment), volumes (article_day, quartile_of_volume)
-- params: none
-- caution: as dated_pairs.sql
SELECT
  timed.segment,
  timed.article_time,
  (timed.article_day % 7 + 7) % 7 AS weekday,
  (timed.article_hour % 24 + 24) % 24 AS hour_of_day,
  volumes.quartile_of_volume AS volume
FROM (
  SELECT
    segment,
    article_time,
    CAST(floor(CAST(article_time AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) AS article_day,
    CAST(floor(CAST(article_time AS DOUBLE) / CAST('3600000000' AS DOUBLE)) AS BIGINT) AS article_hour
  FROM articles
) AS timed
LEFT JOIN volumes ON timed.article_day = volumes.article_day
