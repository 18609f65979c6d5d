-- grain: one row
-- reads: annotations_read (passes_where, series_id), annotated_series (series_id)
-- params: none
-- caution: annotations of series that are not evaluated, those of no series among them
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM annotations_read AS p
ANTI JOIN annotated_series AS s ON p.series_id = s.series_id
WHERE p.passes_where
