-- grain: one row per row of an input that has a key which is asked for
-- reads: input_read (passes_where, segment), explained_keys (segment)
-- params: none
-- caution: i.segment stands for the key and the columns to show, k.segment for the key alone
SELECT
  i.segment
FROM input_read AS i
INNER JOIN explained_keys AS k ON i.segment IS NOT DISTINCT FROM k.segment
WHERE i.passes_where
