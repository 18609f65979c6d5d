-- grain: one row per segment, replicate, bin and stratum
-- reads: pairs_of_strata (segment, replicate, bin, event_stratum, article_stratum, score, lag)
-- params: $before_start, $before_end
-- caution: as matches.sql, before the event only; lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  event_stratum,
  article_stratum,
  CAST(count(*) AS BIGINT) AS m_before,
  min(score) AS lowest,
  max(score) AS highest
FROM pairs_of_strata
WHERE lag >= $before_start AND lag < $before_end
GROUP BY segment, replicate, bin, event_stratum, article_stratum
