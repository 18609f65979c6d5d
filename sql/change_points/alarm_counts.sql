-- grain: one row per segment, replicate and bin
-- reads: predictions (segment, replicate, bin, score, is_row, tp, n_predicted, n_false, n_ignored, n_merged, n_alerted,
--   n_ahead, lead)
-- params: none
-- caution: as counts, for alarms: counts are what changes at a score, and may be below 0; leads are decimals before they
--   are added
SELECT
  segment,
  replicate,
  bin,
  CAST(sum(n_predicted) AS BIGINT) AS n_predicted,
  CAST(sum(tp) AS BIGINT) AS tp,
  CAST(0 AS DECIMAL(38, 15)) AS recall_sum,
  CAST(0 AS DECIMAL(38, 15)) AS recall_always,
  CAST(count_if(is_row) AS BIGINT) AS n_rows,
  CAST(sum(n_false) AS BIGINT) AS n_false,
  CAST(sum(n_ignored) AS BIGINT) AS n_ignored,
  CAST(sum(n_merged) AS BIGINT) AS n_merged,
  CAST(sum(n_alerted) AS BIGINT) AS n_alerted,
  CAST(sum(n_ahead) AS BIGINT) AS n_ahead,
  sum(CAST(coalesce(lead * n_alerted, 0) AS DECIMAL(38, 15))) AS lead_sum,
  CAST(0 AS DECIMAL(38, 15)) AS lead_sum_always,
  CAST(0 AS DECIMAL(38, 15)) AS observed,
  min(score) AS lowest,
  max(score) AS highest
FROM predictions
GROUP BY segment, replicate, bin
