-- grain: one row per segment, replicate and bin
-- reads: predictions (segment, replicate, bin, score, is_row, tp, share)
-- params: none
-- caution: tp is what a prediction adds when predictions enter by descending score, so add up from above for "at or
--   above"; lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(count(*) AS BIGINT) AS n_predicted,
  CAST(sum(tp) AS BIGINT) AS tp,
  sum(CAST(share AS DECIMAL(38, 15))) AS recall_sum,
  CAST(0 AS DECIMAL(38, 15)) AS recall_always,
  CAST(count_if(is_row) AS BIGINT) AS n_rows,
  min(score) AS lowest,
  max(score) AS highest
FROM predictions
GROUP BY segment, replicate, bin
