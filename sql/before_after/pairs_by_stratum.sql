-- grain: one row per segment, replicate and stratum
-- reads: pairs_of_strata (segment, replicate, event_stratum, article_stratum, score, lag)
-- params: $before_start, $before_end, $after_start, $after_end
-- caution: for inputs in which every compared pair is a row; pairs without a finite score take no part
SELECT
  segment,
  replicate,
  event_stratum,
  article_stratum,
  CAST(count_if(lag >= $before_start AND lag < $before_end) AS BIGINT) AS n_before,
  CAST(count_if(lag >= $after_start AND lag <= $after_end) AS BIGINT) AS n_after
FROM pairs_of_strata
WHERE score IS NOT NULL
GROUP BY segment, replicate, event_stratum, article_stratum
