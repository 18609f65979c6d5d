-- grain: one row per segment, replicate and stratum
-- reads: events_of_strata (segment, replicate, event_stratum, article_stratum, n_before, n_after, complete)
-- params: none
-- caution: as compared.sql; the stratum of the article is empty, as the given numbers know no articles
SELECT
  segment,
  replicate,
  event_stratum,
  article_stratum,
  CAST(sum(n_before) AS BIGINT) AS n_before,
  CAST(sum(n_after) AS BIGINT) AS n_after
FROM events_of_strata
WHERE complete
GROUP BY segment, replicate, event_stratum, article_stratum
