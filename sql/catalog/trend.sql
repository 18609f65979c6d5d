-- One metric in every kept run, with its change since the run before: FROM trend('precision').
-- of_metric: a metric; of_stage, of_criterion: NULL for all. Runs are in order of the day that they are about, ds, and
-- of their publication where they have none, or the same.
CREATE OR REPLACE MACRO trend(of_metric, of_stage := NULL, of_criterion := NULL) AS TABLE
SELECT
  ds,
  published_at,
  run_id,
  stage,
  grouping,
  "group",
  result_table,
  criterion,
  threshold,
  value,
  lower,
  upper,
  value - lag(value) OVER (
    PARTITION BY stage, grouping, "group", result_table, criterion
    ORDER BY coalesce(ds, CAST(published_at AS DATE)), published_at
  ) AS change
FROM history.metrics
WHERE
  metric = of_metric
  AND (of_stage IS NULL OR stage = of_stage)
  AND (of_criterion IS NULL OR criterion = of_criterion)
ORDER BY stage, result_table, grouping, "group", criterion, coalesce(ds, CAST(published_at AS DATE)), published_at
