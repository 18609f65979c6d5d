-- grain: one row per sampled pair whose lag is known from both its column and its times, in hours
-- reads: pairs_read (passes_where, event_id, article_id, lag_hours, file_row_number), event_times (event_id, event_time),
--   article_times (article_id, article_time)
-- params: $n_rows_of_file
-- caution: as lags_and_times.sql, with both times from the events and the articles
SELECT
  event_id,
  given,
  from_times
FROM (
  SELECT
    pairs_read.event_id,
    pairs_read.lag_hours AS given,
    CAST(article_times.article_time - event_times.event_time AS DOUBLE) / CAST('3600000000' AS DOUBLE) AS from_times
  FROM pairs_read
  INNER JOIN event_times ON pairs_read.event_id = event_times.event_id
  INNER JOIN article_times ON pairs_read.article_id = article_times.article_id
  WHERE pairs_read.passes_where AND pairs_read.file_row_number < $n_rows_of_file
) AS sampled
WHERE given IS NOT NULL AND from_times IS NOT NULL
ORDER BY event_id, given, from_times
