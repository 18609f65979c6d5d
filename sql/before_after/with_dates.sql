-- grain: one row per row that is read: a pair that takes part, or an article
-- reads: timed_rows (time_of_article, segment), volumes (article_day, quartile_of_volume)
-- params: none
-- caution: days and hours are of UTC, from a time in microseconds; weekday 0 is a Thursday, as day 0 was one
SELECT
  timed.segment,
  (timed.article_day % 7 + 7) % 7 AS weekday,
  (timed.article_hour % 24 + 24) % 24 AS hour_of_day,
  volumes.quartile_of_volume AS volume
FROM (
  SELECT
    segment,
    CAST(floor(CAST(time_of_article AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) AS article_day,
    CAST(floor(CAST(time_of_article AS DOUBLE) / CAST('3600000000' AS DOUBLE)) AS BIGINT) AS article_hour
  FROM timed_rows
) AS timed
LEFT JOIN volumes ON timed.article_day = volumes.article_day
