-- grain: one row per segment and replicate
-- reads: rankings (segment, replicate, n_retrieved)
-- params: none
-- caution: a ranking is one query within one value of all grouping columns; a query that was not retrieved has none
SELECT
  segment,
  replicate,
  CAST(count(*) AS BIGINT) AS n_rankings,
  CAST(sum(n_retrieved) AS BIGINT) AS n_retrieved
FROM rankings
GROUP BY segment, replicate
