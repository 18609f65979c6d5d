-- grain: one row per event
-- reads: units_read (passes_where, unit_cluster, event_time, segment), archive (first_time, last_time),
--   replicates (cluster, replicate)
-- params: $before_start, $after_end
-- caution: a window is complete where the articles reach from its start to its end; segment stands for the key, what
--   counting needs of an event, and its grouping columns
SELECT
  units_read.segment,
  coalesce(
    units_read.event_time + $before_start >= archive.first_time
      AND units_read.event_time + $after_end <= archive.last_time,
    FALSE
  ) AS complete,
  replicates.replicate
FROM units_read
INNER JOIN replicates ON units_read.unit_cluster = replicates.cluster
CROSS JOIN archive
WHERE units_read.passes_where
