-- grain: one row per sampled pair whose lag is known from both its column and its times, in hours
-- reads: pairs_read (passes_where, event_id, article_id, lag_hours, event_time, file_row_number),
--   article_times (article_id, article_time)
-- params: $n_rows_of_file
-- caution: as lags_and_times.sql, with the times of the articles from the articles
SELECT
  event_id,
  given,
  from_times
FROM (
  SELECT
    pairs_read.event_id,
    pairs_read.lag_hours AS given,
    CAST(article_times.article_time - pairs_read.event_time AS DOUBLE) / CAST('3600000000' AS DOUBLE) AS from_times
  FROM pairs_read
  INNER JOIN article_times ON pairs_read.article_id = article_times.article_id
  WHERE pairs_read.passes_where AND pairs_read.file_row_number < $n_rows_of_file
) AS sampled
WHERE given IS NOT NULL AND from_times IS NOT NULL
ORDER BY event_id, given, from_times
