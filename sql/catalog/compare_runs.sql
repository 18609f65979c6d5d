-- Every metric in two runs, side by side: FROM compare_runs(), which compares the latest run with the one before it: where
-- runs have a day, ds, that of the last day before, if there is one with the same labels.
-- earlier, later: run ids. `apart`: the two intervals do not overlap, which noise alone seldom does.
CREATE OR REPLACE MACRO compare_runs(earlier := NULL, later := NULL) AS TABLE
WITH placed AS (
  SELECT
    run_id,
    generation,
    ds,
    labels,
    coalesce(ds, CAST(published_at AS DATE)) AS day
  FROM runs
),

latest AS (
  SELECT * FROM placed QUALIFY row_number() OVER (ORDER BY generation DESC) = 1
),

before AS (
  SELECT placed.run_id
  FROM placed, latest
  WHERE placed.generation < latest.generation AND placed.day <= latest.day
  ORDER BY
    (latest.ds IS NULL OR placed.day < latest.day) DESC,
    (placed.labels IS NOT DISTINCT FROM latest.labels) DESC,
    placed.day DESC,
    placed.generation DESC
  LIMIT 1
),

a AS (
  SELECT * FROM history.metrics WHERE run_id = coalesce(earlier, (SELECT run_id FROM before))
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
