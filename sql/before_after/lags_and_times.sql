-- grain: one row per sampled pair whose lag is known from both its column and its times, in hours
-- reads: pairs_read (passes_where, event_id, lag, event_time, article_time, file_row_number)
-- params: $n_rows_of_file
-- caution: the first rows of every file; times are in microseconds, and those that pairs do not have themselves come
--   from pairs_with_times.sql
SELECT
  event_id,
  given,
  from_times
FROM (
  SELECT
    event_id,
    lag / CAST('3600000000' AS DOUBLE) AS given,
    CAST(article_time - event_time AS DOUBLE) / CAST('3600000000' AS DOUBLE) AS from_times
  FROM pairs_read
  WHERE passes_where AND file_row_number < $n_rows_of_file
) AS sampled
WHERE given IS NOT NULL AND from_times IS NOT NULL
ORDER BY event_id, given, from_times
