-- grain: one row per system that was run: value of the grouping columns of predictions
-- reads: predictions_read (passes_where, segment)
-- params: none
-- segment: predictions
-- keep: it is read often
-- caution: a system that found nothing at all is not among them
SELECT DISTINCT
  segment
FROM predictions_read
WHERE passes_where
