-- One metric in every kept run that counted it, with its change since the one before with the same labels:
-- FROM trend('precision').
-- Rows that were carried forward are left out as long as the run that counted them is kept. Runs are in order of the day
-- that they are about, ds, and of their publication where they have none, or the same.
-- of_metric: a metric; of_stage, of_criterion: NULL for all.
CREATE OR REPLACE MACRO trend(of_metric, of_stage := NULL, of_criterion := NULL) AS TABLE
SELECT
  ds,
  published_at,
  run_id,
  labels,
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
    PARTITION BY labels, stage, grouping, "group", result_table, criterion
    ORDER BY coalesce(ds, CAST(published_at AS DATE)), published_at
  ) AS change
FROM history.metrics AS metrics
WHERE
  metric = of_metric
  AND (of_stage IS NULL OR stage = of_stage)
  AND (of_criterion IS NULL OR criterion = of_criterion)
  AND NOT EXISTS (
    SELECT 1
    FROM history.stages AS carried
    WHERE
      carried.run_id = metrics.run_id
      AND carried.stage = metrics.stage
      AND carried.carried_from IN (SELECT runs.run_id FROM runs)
  )
ORDER BY labels, stage, result_table, grouping, "group", criterion, coalesce(ds, CAST(published_at AS DATE)), published_at
