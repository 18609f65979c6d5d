-- grain: one row
-- reads: annotations_read (passes_where, series_id, position, segment)
-- params: none
-- caution: rows that repeat an annotation: the same series and position, and segment, the annotator where that is known
SELECT
  CAST(coalesce(sum(n_rows), 0) - count(*) AS BIGINT) AS n_rows
FROM (
  SELECT
    count(*) AS n_rows
  FROM annotations_read
  WHERE passes_where
  GROUP BY series_id, position, segment
) AS distinct_annotations
