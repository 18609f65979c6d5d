-- grain: one row per sampled pair whose lag is known from both its column and its times, in hours
-- reads: pairs_read (passes_where, event_id, lag_hours, article_time, file_row_number), event_times (event_id, event_time)
-- params: $n_rows_of_file
-- caution: as lags_and_times.sql, with the times of the events from the events
SELECT
  event_id,
  given,
  from_times
FROM (
  SELECT
    pairs_read.event_id,
    pairs_read.lag_hours AS given,
    CAST(pairs_read.article_time - event_times.event_time AS DOUBLE) / CAST('3600000000' AS DOUBLE) AS from_times
  FROM pairs_read
  INNER JOIN event_times ON pairs_read.event_id = event_times.event_id
  WHERE pairs_read.passes_where AND pairs_read.file_row_number < $n_rows_of_file
) AS sampled
WHERE given IS NOT NULL AND from_times IS NOT NULL
ORDER BY event_id, given, from_times
