-- grain: one row, how many gold rows repeat a pair
-- reads: gold_read (passes_where, event_id, article_id)
-- params: none
-- caution: the first row of each pair repeats none
SELECT
  CAST(coalesce(sum(n_more), 0) AS BIGINT) AS n_repeated
FROM (
  SELECT count(*) - 1 AS n_more
  FROM gold_read
  WHERE passes_where
  GROUP BY event_id, article_id
) AS pairs
