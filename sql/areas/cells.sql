-- grain: one row per segment and cell
-- reads: scored_cells (segment, cell_block, cell, label)
-- params: none
-- caution: blocks, and cells within a block, rise with the score
SELECT
  segment,
  cell_block,
  cell,
  CAST(count_if(label) AS BIGINT) AS positive,
  CAST(count(label) - count_if(label) AS BIGINT) AS negative
FROM scored_cells
GROUP BY segment, cell_block, cell
ORDER BY segment, cell_block, cell
