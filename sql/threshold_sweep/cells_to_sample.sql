-- grain: one row per segment and cell of scores
-- reads: rows_to_sample (segment, id, score, cell)
-- params: none
-- caution: rows without a score have the cell NULL
SELECT
  segment,
  cell,
  CAST(count(*) AS BIGINT) AS n_rows,
  CAST(count(*) - count(id) AS BIGINT) AS n_without_id,
  min(score) AS lowest,
  max(score) AS highest
FROM rows_to_sample
GROUP BY segment, cell
ORDER BY segment, cell
