-- grain: one row per pair that takes part
-- reads: pairs_read (passes_where, event_id, used_score, lag, segment), events (event_id, complete, replicate, segment)
-- params: none
-- caution: used_score is the score or, where pairs without a valid one are missed, minus infinity for these
SELECT
  pairs_read.segment,
  events.segment,
  events.replicate,
  pairs_read.used_score AS score,
  pairs_read.lag
FROM pairs_read
INNER JOIN events ON pairs_read.event_id = events.event_id
WHERE pairs_read.passes_where AND events.complete
