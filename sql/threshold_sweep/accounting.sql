-- grain: one row per fate of a prediction
-- reads: predictions_read (kept, score_state, label)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT kept THEN 'where'
    WHEN score_state IS NOT NULL THEN score_state
    WHEN label IS NULL THEN 'null_label'
    ELSE 'used'
  END AS fate,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predictions_read
GROUP BY 1
ORDER BY 1
