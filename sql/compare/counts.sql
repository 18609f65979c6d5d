-- grain: one row per segment, replicate and system
-- reads: units (segment, replicate, system)
-- params: none
-- caution: a unit counts once for each system that has it, whether its metrics are defined or not
SELECT
  segment,
  replicate,
  system,
  CAST(count(*) AS BIGINT) AS n_units
FROM units
GROUP BY segment, replicate, system
