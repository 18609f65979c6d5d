-- grain: one row per segment and cell
-- reads: scored_cells (segment, cell_block, cell, score)
-- params: none
-- caution: in the order of cells.sql, row by row; a cell whose lowest is its highest score leaves nothing open
SELECT
  segment,
  cell_block,
  cell,
  min(score) AS lowest,
  max(score) AS highest
FROM scored_cells
GROUP BY segment, cell_block, cell
ORDER BY segment, cell_block, cell
