-- grain: one row per series and annotator who looked at it
-- reads: annotations_read (passes_where, series_id, annotator_id), coders_read (passes_where, series_id, annotator_id)
-- params: none
-- keep: it is read often
-- caution: "by:annotator_id" is the name of the annotator as a grouping column; is_first marks one
--   annotator of a series
SELECT
  series_id,
  annotator_id,
  annotator_id AS "by:annotator_id",
  row_number() OVER (ORDER BY series_id, annotator_id) AS annotator,
  row_number() OVER (PARTITION BY series_id ORDER BY annotator_id) = 1 AS is_first
FROM (
  SELECT
    series_id,
    annotator_id
  FROM annotations_read
  WHERE passes_where
  UNION
  SELECT
    series_id,
    annotator_id
  FROM coders_read
  WHERE passes_where
) AS pairs
