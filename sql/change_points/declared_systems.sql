-- grain: one row per series and system that was run on it
-- reads: runs_read (passes_where, series_id, segment)
-- params: none
-- segment: predictions
-- keep: it is read often
-- caution: also those that found nothing
SELECT DISTINCT
  series_id,
  segment
FROM runs_read
WHERE passes_where
