-- grain: one row
-- reads: predictions_read (passes_where, series_id, position), series_read (passes_where, series_id, start, end)
-- params: none
-- caution: predictions of series whose observation they lie before or after
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM predictions_read AS p
INNER JOIN series_read AS s ON p.series_id = s.series_id
WHERE p.passes_where AND s.passes_where AND (p.position < s.start OR p.position > s."end")
