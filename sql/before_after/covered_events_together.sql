-- grain: one row per event
-- reads: units_read (passes_where, event_time, segment), archive (first_time, last_time)
-- params: $before_start, $after_end
-- caution: as covered_events.sql, without replicates: all events are in replicate 0
SELECT
  units_read.segment,
  coalesce(
    units_read.event_time + $before_start >= archive.first_time
      AND units_read.event_time + $after_end <= archive.last_time,
    FALSE
  ) AS complete,
  CAST(0 AS SMALLINT) AS replicate
FROM units_read
CROSS JOIN archive
WHERE units_read.passes_where
