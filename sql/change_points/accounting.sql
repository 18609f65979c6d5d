-- grain: one row per status of a prediction
-- reads: predictions_with_runs (passes_where, score_state, series_id, position, is_annotated, is_declared)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN score_state IS NOT NULL THEN score_state
    WHEN series_id IS NULL THEN 'null_series_id'
    WHEN position IS NULL THEN 'null_position'
    WHEN NOT is_annotated THEN 'unjudged_series'
    WHEN NOT is_declared THEN 'unlisted_run'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predictions_with_runs
GROUP BY 1
ORDER BY 1
