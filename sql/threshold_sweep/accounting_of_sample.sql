-- grain: one row per status of a prediction
-- reads: predictions_read (passes_where, score_state), labelled_predictions (label)
-- params: $missed
-- caution: as accounting.sql, where labels are those of a sample; $missed is 0
SELECT
  status,
  n_rows
FROM (
  SELECT
    status,
    CAST(sum(n_rows) AS BIGINT) AS n_rows
  FROM (
    SELECT
      CASE WHEN NOT passes_where THEN 'where' ELSE coalesce(score_state, 'not_labelled') END AS status,
      count(*) AS n_rows
    FROM predictions_read
    WHERE $missed = 0
    GROUP BY 1
    UNION ALL
    SELECT
      'not_labelled' AS status,
      -count(*) AS n_rows
    FROM labelled_predictions
    UNION ALL
    SELECT
      'used' AS status,
      count(label) AS n_rows
    FROM labelled_predictions
  ) AS counted
  GROUP BY status
) AS added
WHERE n_rows <> 0
ORDER BY status
