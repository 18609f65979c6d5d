-- grain: one row per segment and cell of scores
-- reads: rows_to_sample (segment, score, cell, row_weight, row_proxy)
-- params: none
-- caution: rows without a score are in no cell; row_weight and row_proxy are 1 and 0 where there are none
SELECT
  segment,
  cell,
  CAST(count(*) AS BIGINT) AS n_rows,
  sum(CAST(row_weight AS DECIMAL(38, 15))) AS weight,
  sum(CAST(row_weight * row_proxy AS DECIMAL(38, 15))) AS proxy,
  min(score) AS lowest,
  max(score) AS highest
FROM rows_to_sample
WHERE cell IS NOT NULL
GROUP BY segment, cell
ORDER BY segment, cell
