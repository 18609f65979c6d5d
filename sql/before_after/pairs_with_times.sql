-- grain: one row per pair whose event or article has a time
-- reads: pairs_read (key, segment), times (key, time)
-- params: none
-- caution: key and time are event_id and event_time, or article_id and article_time
SELECT
  pairs_read.segment,
  times.time
FROM pairs_read
INNER JOIN times ON pairs_read.key = times.key
