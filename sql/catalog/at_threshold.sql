-- The rows of a table at a threshold, in every group the nearest one at or below it, so that 0.57 finds its row:
-- FROM at_threshold('threshold_sweep_curve', 0.57).
-- curve: a table with the column threshold, as text; wanted: the threshold.
CREATE OR REPLACE MACRO at_threshold(curve, wanted) AS TABLE
SELECT points.*
FROM query_table(curve) AS points
WHERE points.threshold <= wanted
QUALIFY points.threshold = max(points.threshold) OVER (
  PARTITION BY
    points.stage,
    points.grouping,
    list_transform(
      string_split(points.grouping, ','),
      lambda name : json_extract_string(to_json(points), '/' || replace(replace(name, '~', '~0'), '/', '~1'))
    )
)
