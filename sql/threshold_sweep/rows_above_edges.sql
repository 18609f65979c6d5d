-- grain: one row per segment and edge: a score that rows are held against
-- reads: rows_to_sample (segment, score, cell, row_weight, row_proxy), edges (score, cell)
-- params: none
-- caution: only the rows in the cell of the edge, at or above it; how many lie in cells above it is known of the cells
SELECT
  r.segment,
  e.score AS edge,
  e.cell,
  CAST(count(*) AS BIGINT) AS n_rows,
  sum(CAST(r.row_weight AS DECIMAL(38, 15))) AS weight,
  sum(CAST(r.row_weight * r.row_proxy AS DECIMAL(38, 15))) AS proxy
FROM rows_to_sample AS r
INNER JOIN edges AS e ON r.cell = e.cell AND r.score >= e.score
GROUP BY r.segment, e.score, e.cell
ORDER BY r.segment, e.score
