-- grain: one row per segment, replicate, bin and day
-- reads: pairs_of_lags (segment, replicate, bin, score, lag, lag_day)
-- params: $before_start, $before_end, $after_start, $after_end
-- caution: days are counted from the event and rounded down, so -1 is the day before it; lowest and highest are the
--   certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(lag_day AS BIGINT) AS lag_days,
  CAST(count(*) AS BIGINT) AS matches,
  min(score) AS lowest,
  max(score) AS highest
FROM pairs_of_lags
WHERE (lag >= $before_start AND lag < $before_end)
  OR (lag >= $after_start AND lag <= $after_end)
GROUP BY segment, replicate, bin, lag_day
