-- grain: one row
-- reads: annotations_read (passes_where, series_id, start, end, segment)
-- params: none
-- caution: as repeated_annotations, where incidents last: rows with the same start and end repeat one
SELECT
  CAST(coalesce(sum(n_rows), 0) - count(*) AS BIGINT) AS n_rows
FROM (
  SELECT
    count(*) AS n_rows
  FROM annotations_read
  WHERE passes_where
  GROUP BY series_id, start, "end", segment
) AS distinct_annotations
