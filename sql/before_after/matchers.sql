-- grain: one row per matcher, numbered from 1
-- reads: pairs_read (passes_where, segment)
-- params: none
-- caution: a matcher is a combination of values of pairs that pass where, NULL too, whether a pair is used or not
SELECT
  segment,
  CAST(row_number() OVER (ORDER BY segment) AS BIGINT) AS matcher
FROM (
  SELECT DISTINCT segment
  FROM pairs_read
  WHERE passes_where
) AS values_of_pairs
