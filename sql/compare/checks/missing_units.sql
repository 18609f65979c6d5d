-- grain: one row for each of the first two units that not every system has
-- reads: units_read (passes_where, segment, system)
-- params: none
-- caution: segment is the key of a unit; it repeats in no system, so its rows are its systems
-- message: input {input}: not every system has every unit, for example {examples}
-- remedy: Set missing_units = "skip" to compare each pair on the units that both have.
SELECT
  segment,
  n_systems,
  of_systems
FROM (
  SELECT
    segment,
    CAST(count(*) AS BIGINT) AS n_systems
  FROM units_read
  WHERE passes_where
  GROUP BY segment
) AS per_unit
CROSS JOIN (
  SELECT
    CAST(count(DISTINCT system) AS BIGINT) AS of_systems
  FROM units_read
  WHERE passes_where
) AS systems
WHERE n_systems < of_systems
ORDER BY segment
LIMIT 2
