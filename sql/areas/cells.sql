-- grain: one row per segment and cell
-- reads: scored_cells (segment, cell, score, label)
-- params: none
-- caution: cells rise with the score; lowest and highest tell whether a cell holds a single score
SELECT
  segment,
  cell,
  CAST(count_if(label) AS BIGINT) AS positive,
  CAST(count_if(NOT label) AS BIGINT) AS negative,
  min(score) AS lowest,
  max(score) AS highest
FROM scored_cells
GROUP BY segment, cell
ORDER BY segment, cell
