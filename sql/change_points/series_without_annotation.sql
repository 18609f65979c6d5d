-- grain: one row
-- reads: annotated_series (n_annotations)
-- params: none
-- caution: where nothing says which series were annotated
SELECT
  CAST(count(*) AS BIGINT) AS n_rows
FROM annotated_series
WHERE n_annotations = 0
