-- grain: one row
-- reads: annotated_series (n_annotations), outcomes (is_run, n_true)
-- params: none
-- caution: as repeated_annotations, where every series has one run, so that its true points are the distinct ones
SELECT
  n_annotations - n_distinct AS n_rows
FROM (
  SELECT
    CAST(coalesce(sum(n_annotations), 0) AS BIGINT) AS n_annotations
  FROM annotated_series
) AS annotations
CROSS JOIN (
  SELECT
    CAST(coalesce(sum(n_true), 0) AS BIGINT) AS n_distinct
  FROM outcomes
  WHERE is_run
) AS true_points
