-- grain: one row per segment, replicate and day before the event
-- reads: pairs_of_lags (segment, replicate, score, lag, lag_day)
-- params: $before_start, $before_end
-- caution: for inputs in which every compared pair is a row; pairs without a finite score take no part; days as in
--   lags.sql, and the first and the last may be cut by the window
SELECT
  segment,
  replicate,
  CAST(lag_day AS BIGINT) AS lag_days,
  CAST(count(*) AS BIGINT) AS n_pairs
FROM pairs_of_lags
WHERE score IS NOT NULL AND lag >= $before_start AND lag < $before_end
GROUP BY segment, replicate, lag_day
