-- grain: one row per status of a prediction
-- reads: predictions_read (passes_where, score_state, label)
-- params: $missed
-- caution: the first reason that fits counts, in the order of the CASE; rows without a valid score that are counted as
--   missed keep the reason why; it runs only when rows were left out or missed
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN $missed = 0 AND score_state IS NOT NULL THEN score_state
    WHEN label IS NULL THEN 'null_label'
    ELSE coalesce(score_state, 'used')
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predictions_read
GROUP BY 1
ORDER BY 1
