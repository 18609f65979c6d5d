-- grain: one row per UTC day with articles
-- reads: articles (article_time)
-- params: none
-- caution: quartile 1 has the days with the fewest articles; days with as many articles share a quartile, so the four
--   need not be of one size
WITH days AS (
  SELECT
    article_day,
    count(*) AS n_articles
  FROM (
    SELECT CAST(floor(CAST(article_time AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) AS article_day
    FROM articles
  ) AS days_of_articles
  GROUP BY article_day
),
ranked AS (
  SELECT
    article_day,
    rank() OVER (ORDER BY n_articles) - 1 AS n_lower,
    count(*) OVER () AS n_days
  FROM days
)
SELECT
  article_day,
  CASE
    WHEN 4 * n_lower < n_days THEN 1
    WHEN 4 * n_lower < 2 * n_days THEN 2
    WHEN 4 * n_lower < 3 * n_days THEN 3
    ELSE 4
  END AS quartile_of_volume
FROM ranked
