-- grain: no row
-- reads: none
-- params: none
-- caution: stands for volumes.sql where the volume is no stratum, so that the articles need not be read for it
SELECT
  CAST(NULL AS BIGINT) AS article_day,
  CAST(NULL AS BIGINT) AS quartile_of_volume
WHERE FALSE
