-- grain: one row per series that somebody looked at
-- reads: annotations_read (kept, series_id), coders_read (kept, series_id)
-- params: none
-- caution: series that somebody looked at without marking a point are known from coders only
SELECT
  series_id
FROM annotations_read
WHERE kept
UNION
SELECT
  series_id
FROM coders_read
WHERE kept
