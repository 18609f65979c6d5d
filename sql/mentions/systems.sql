-- grain: one row per system: values of the grouping columns that only predictions have
-- reads: predicted_read (passes_where, segment)
-- params: none
-- segment: systems
-- keep: systems have numbers, which all that reads them must share
-- caution: gold mentions count for every system; _system numbers them from 1
SELECT
  segment,
  CAST(row_number() OVER (ORDER BY segment) AS BIGINT) AS _system
FROM (
  SELECT DISTINCT
    segment
  FROM predicted_read
  WHERE passes_where
) AS distinct_systems
