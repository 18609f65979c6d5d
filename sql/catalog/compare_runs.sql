-- Every metric in two runs, side by side: FROM compare_runs(), which compares the latest run with the one before it: that
-- of the day before, where runs have a day, ds.
-- earlier, later: run ids. `apart`: the two intervals do not overlap, which noise alone seldom does.
CREATE OR REPLACE MACRO compare_runs(earlier := NULL, later := NULL) AS TABLE
WITH latest AS (
  SELECT
    run_id,
    lag(run_id) OVER (ORDER BY coalesce(ds, CAST(published_at AS DATE)), generation) AS run_before
  FROM runs
  QUALIFY row_number() OVER (ORDER BY generation DESC) = 1
),

a AS (
  SELECT * FROM history.metrics WHERE run_id = coalesce(earlier, (SELECT run_before FROM latest))
),

b AS (
  SELECT * FROM history.metrics WHERE run_id = coalesce(later, (SELECT run_id FROM latest))
)

SELECT
  coalesce(a.stage, b.stage) AS stage,
  coalesce(a.grouping, b.grouping) AS grouping,
  coalesce(a."group", b."group") AS "group",
  coalesce(a.result_table, b.result_table) AS result_table,
  coalesce(a.criterion, b.criterion) AS criterion,
  coalesce(a.metric, b.metric) AS metric,
  a.threshold AS threshold_a,
  b.threshold AS threshold_b,
  a.value AS value_a,
  b.value AS value_b,
  b.value - a.value AS difference,
  a.lower AS lower_a,
  a.upper AS upper_a,
  b.lower AS lower_b,
  b.upper AS upper_b,
  b.upper < a.lower OR b.lower > a.upper AS apart
FROM a
FULL JOIN b
  ON
    a.stage = b.stage
    AND a.grouping = b.grouping
    AND a."group" = b."group"
    AND a.result_table = b.result_table
    AND a.criterion IS NOT DISTINCT FROM b.criterion
    AND a.metric = b.metric
ORDER BY stage, result_table, grouping, "group", criterion, metric
