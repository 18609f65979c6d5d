-- grain: one row per segment and cell
-- reads: unit_rows_in_cells (segment, cell_block, cell, label, score)
-- params: none
-- caution: as cells.sql and extremes.sql in one scan
SELECT
  segment,
  cell_block,
  cell,
  CAST(count_if(label) AS BIGINT) AS positive,
  CAST(count(label) - count_if(label) AS BIGINT) AS negative,
  min(score) AS lowest,
  max(score) AS highest
FROM unit_rows_in_cells
GROUP BY segment, cell_block, cell
ORDER BY segment, cell_block, cell
