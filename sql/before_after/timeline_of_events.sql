-- grain: one row per event that takes part
-- reads: events (complete, segment)
-- params: none
-- caution: segment stands for the columns that are wanted: times in microseconds, given numbers, groups
SELECT
  segment
FROM events
WHERE complete
