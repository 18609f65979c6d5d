-- grain: one row
-- reads: toponyms (is_gold, is_located)
-- params: none
-- caution: gold mentions whose match has coordinates
SELECT
  CAST(count_if(is_located) AS BIGINT) AS n_rows
FROM toponyms
WHERE is_gold
