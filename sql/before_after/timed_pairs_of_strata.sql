-- grain: one row per pair that takes part
-- reads: used_pairs (replicate, score, lag_hours, time_of_article, segment, event_label, article_label),
--   volumes (article_day, quartile_of_volume)
-- params: none
-- caution: as pairs_of_strata.sql, where the weekday, the hour or the volume of the article is a stratum: days and
--   hours are of UTC, day 0 was a Thursday
SELECT
  segment,
  replicate,
  score,
  lag_hours,
  event_label AS event_stratum,
  article_label AS article_stratum
FROM (
  SELECT
    timed.segment,
    timed.replicate,
    timed.score,
    timed.lag_hours,
    (timed.article_day % 7 + 7) % 7 AS weekday,
    (timed.article_hour % 24 + 24) % 24 AS hour_of_day,
    volumes.quartile_of_volume AS volume
  FROM (
    SELECT
      segment,
      replicate,
      score,
      lag_hours,
      CAST(floor(CAST(time_of_article AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) AS article_day,
      CAST(floor(CAST(time_of_article AS DOUBLE) / CAST('3600000000' AS DOUBLE)) AS BIGINT) AS article_hour
    FROM used_pairs
  ) AS timed
  LEFT JOIN volumes ON timed.article_day = volumes.article_day
) AS labelled
