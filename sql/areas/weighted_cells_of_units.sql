-- grain: one row per segment and cell
-- reads: unit_rows_in_cells (segment, cell_block, cell, label, weight, score)
-- params: none
-- caution: as cells_of_units.sql, with sums of weights; every weight is a decimal before it is added
SELECT
  segment,
  cell_block,
  cell,
  sum(CAST(CASE WHEN label THEN weight ELSE 0 END AS DECIMAL(38, 15))) AS positive,
  sum(CAST(CASE WHEN label THEN 0 ELSE weight END AS DECIMAL(38, 15))) AS negative,
  min(score) AS lowest,
  max(score) AS highest
FROM unit_rows_in_cells
GROUP BY segment, cell_block, cell
ORDER BY segment, cell_block, cell
