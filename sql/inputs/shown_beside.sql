-- grain: one row per row of an input whose key was drawn
-- reads: input_read (passes_where, segment, same_row), drawn (same_row)
-- params: none
-- caution: same_row stands for the condition that the keys of both are equal; segment are the key and what is shown
SELECT shown.segment
FROM input_read AS shown
INNER JOIN drawn ON same_row
WHERE shown.passes_where
