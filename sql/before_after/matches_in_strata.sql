-- grain: one row per match that an audit can draw
-- reads: matches_to_sample (segment, replicate, score, cell, same_group), audit_cells (cell, stratum)
-- params: none
-- caution: same_group stands for the condition that the grouping columns of both are equal
SELECT
  p.segment,
  p.replicate,
  p.score,
  c.stratum
FROM matches_to_sample AS p
INNER JOIN audit_cells AS c ON p.cell = c.cell AND same_group
