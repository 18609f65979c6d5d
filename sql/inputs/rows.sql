-- grain: one row per row that where keeps
-- reads: input_read (kept, segment)
-- params: none
-- caution: segment stands for the columns that are wanted
SELECT
  segment
FROM input_read
WHERE kept
