-- grain: one row per group, unit and label
-- reads: unit_rows_in_cells (segment, unit, cell_block, cell, label, score),
--   groups_of_units (segment, place, first_step, lowest_score),
--   influences_in_cells (step, influence_average_precision, influence_pr_auc, influence_roc_auc)
-- params: none
-- caution: two steps for every cell of a group, one for each label; influences are whole multiples of a power of two,
--   so that sums do not depend on the order of the rows, and so small that none of them overflows
SELECT
  g.place,
  r.unit,
  r.label,
  CAST(count(*) AS BIGINT) AS n,
  CAST(count_if(r.score >= g.lowest_score) AS BIGINT) AS n_retrieved,
  CAST(sum(i.influence_average_precision) AS BIGINT) AS average_precision,
  CAST(sum(i.influence_pr_auc) AS BIGINT) AS pr_auc,
  CAST(sum(i.influence_roc_auc) AS BIGINT) AS roc_auc
FROM unit_rows_in_cells AS r
INNER JOIN groups_of_units AS g ON r.segment IS NOT DISTINCT FROM g.segment
INNER JOIN influences_in_cells AS i
  ON g.first_step
  + 2 * (65536 * CAST(r.cell_block AS BIGINT) + CAST(r.cell AS BIGINT))
  + CASE WHEN r.label THEN 1 ELSE 0 END = i.step
GROUP BY g.place, r.unit, r.label
