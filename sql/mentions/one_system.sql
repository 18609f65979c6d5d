-- grain: one row: all predictions are those of one system
-- reads: none
-- params: none
-- keep: as systems.sql
-- caution: stands for systems.sql where no grouping column is one of predictions only
SELECT
  CAST(0 AS BIGINT) AS _system
