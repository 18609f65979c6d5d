-- grain: one row per segment and cell
-- reads: scored_cells (segment, cell_block, cell, label, weight)
-- params: none
-- caution: as cells.sql, with sums of weights and of squared weights; every weight is a decimal before it is added
SELECT
  segment,
  cell_block,
  cell,
  sum(CAST(CASE WHEN label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight END AS DECIMAL(38, 15))) AS negative,
  sum(CAST(CASE WHEN label THEN weight * weight ELSE 0 END AS DECIMAL(38, 15))) AS positive_squares,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight * weight END AS DECIMAL(38, 15))) AS negative_squares
FROM scored_cells
GROUP BY segment, cell_block, cell
ORDER BY segment, cell_block, cell
