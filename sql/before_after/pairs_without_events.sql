-- grain: one row per pair that takes part
-- reads: pairs_read (passes_where, required, used_score, lag, segment)
-- params: none
-- caution: as pairs_with_events.sql, where no events are listed and there are no replicates; required is the event_id,
--   or TRUE where no file has a NULL, so that it need not be read
SELECT
  pairs_read.segment,
  CAST(0 AS SMALLINT) AS replicate,
  pairs_read.used_score AS score,
  pairs_read.lag
FROM pairs_read
WHERE pairs_read.passes_where AND pairs_read.required IS NOT NULL
