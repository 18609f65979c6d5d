-- grain: no row: annotators are not told apart
-- reads: annotated_series (series_id)
-- params: none
-- caution: stands for annotators
SELECT
  series_id,
  TRUE AS is_first
FROM annotated_series
WHERE FALSE
