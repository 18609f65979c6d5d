-- grain: one row per listed series
-- reads: series_read (passes_where, series_id, observed)
-- params: none
-- caution: in the unit of the positions, of times in microseconds
SELECT
  series_id,
  observed
FROM series_read
WHERE passes_where
