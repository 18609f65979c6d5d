-- grain: one row
-- reads: pairs_read (kept, article_id, lag_hours), articles (article_id)
-- params: $before_start, $after_end
-- caution: rows of pairs in the window whose article the articles lack, and all of them; with an example of either key
SELECT
  CAST(coalesce(sum(named.n_rows), 0) AS BIGINT) AS n_rows,
  CAST(coalesce(sum(CASE WHEN listed.article_id IS NULL THEN named.n_rows END), 0) AS BIGINT) AS n_unlisted,
  min(CASE WHEN listed.article_id IS NULL THEN named.article_id END) AS unlisted_example,
  (SELECT min(article_id) FROM articles) AS listed_example
FROM (
  SELECT article_id, count(*) AS n_rows
  FROM pairs_read
  WHERE kept AND article_id IS NOT NULL AND lag_hours >= $before_start AND lag_hours <= $after_end
  GROUP BY article_id
) AS named
LEFT JOIN (SELECT DISTINCT article_id FROM articles) AS listed ON named.article_id = listed.article_id
