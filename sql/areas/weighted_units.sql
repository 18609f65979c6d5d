-- grain: one row per group, unit and label
-- reads: unit_rows_in_cells (segment, unit, cell_block, cell, label, score, weight),
--   groups_of_units (segment, place, first_step, lowest_score),
--   influences_in_cells (step, influence_average_precision, influence_pr_auc, influence_roc_auc)
-- params: none
-- caution: as units.sql, with sums of weights and of influences times weights; influences are between -1 and 1, and every
--   product is a decimal before it is added
SELECT
  g.place,
  r.unit,
  r.label,
  CAST(count(*) AS BIGINT) AS n,
  CAST(count_if(r.score >= g.lowest_score) AS BIGINT) AS n_retrieved,
  sum(CAST(r.weight AS DECIMAL(38, 15))) AS weight,
  sum(CAST(CASE WHEN r.score >= g.lowest_score THEN r.weight ELSE 0 END AS DECIMAL(38, 15))) AS weight_retrieved,
  sum(CAST(r.weight * i.influence_average_precision AS DECIMAL(38, 15))) AS average_precision,
  sum(CAST(r.weight * i.influence_pr_auc AS DECIMAL(38, 15))) AS pr_auc,
  sum(CAST(r.weight * i.influence_roc_auc AS DECIMAL(38, 15))) AS roc_auc
FROM unit_rows_in_cells AS r
INNER JOIN groups_of_units AS g ON r.segment IS NOT DISTINCT FROM g.segment
INNER JOIN influences_in_cells AS i
  ON g.first_step
  + 2 * (65536 * CAST(r.cell_block AS BIGINT) + CAST(r.cell AS BIGINT))
  + CASE WHEN r.label THEN 1 ELSE 0 END = i.step
GROUP BY g.place, r.unit, r.label
