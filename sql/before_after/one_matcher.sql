-- grain: one row
-- reads: none
-- params: none
-- caution: where no grouping column names the matcher, all pairs are of one, with the number 0
SELECT
  CAST(0 AS BIGINT) AS matcher
