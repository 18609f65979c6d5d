-- grain: no row: an optional input that is not there
-- reads: input (segment)
-- params: none
-- caution: has the columns of a key as another input has them, so that both can be compared
SELECT
  segment,
  FALSE AS passes_where
FROM input
WHERE FALSE
