-- grain: one row per row that passes where
-- reads: input_read (passes_where, segment)
-- params: none
-- caution: segment stands for the columns that are wanted
SELECT
  segment
FROM input_read
WHERE passes_where
