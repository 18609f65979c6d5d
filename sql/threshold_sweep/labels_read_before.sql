-- grain: one row per row of the sheet of an earlier draw
-- reads: labelled_read (passes_where, id, label)
-- params: none
-- caution: a label that is NULL is a row that nobody has labelled yet
SELECT
  id,
  label
FROM labelled_read
WHERE passes_where
