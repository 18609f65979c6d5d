-- grain: one row per series that somebody looked at
-- reads: annotations_read (passes_where, series_id), coders_read (passes_where, series_id)
-- params: none
-- caution: series that somebody looked at without marking a point are known from coders only
SELECT
  series_id
FROM annotations_read
WHERE passes_where
UNION
SELECT
  series_id
FROM coders_read
WHERE passes_where
