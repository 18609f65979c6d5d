-- grain: one row
-- reads: pairs_read (passes_where, article_id, lag), articles (article_id)
-- params: $before_start, $after_end
-- caution: rows of pairs in the window whose article the articles lack, and all of them; with an example of either key
SELECT
  CAST(coalesce(sum(n_rows), 0) AS BIGINT) AS n_rows,
  CAST(coalesce(sum(n_unlisted), 0) AS BIGINT) AS n_unlisted,
  min(unlisted_id) AS unlisted_example,
  (SELECT min(article_id) FROM articles) AS listed_example
FROM (
  SELECT
    named.n_rows,
    CASE WHEN listed.article_id IS NULL THEN named.n_rows END AS n_unlisted,
    CASE WHEN listed.article_id IS NULL THEN named.article_id END AS unlisted_id
  FROM (
    SELECT article_id, count(*) AS n_rows
    FROM pairs_read
    WHERE passes_where AND article_id IS NOT NULL AND lag >= $before_start AND lag <= $after_end
    GROUP BY article_id
  ) AS named
  LEFT JOIN (SELECT DISTINCT article_id FROM articles) AS listed ON named.article_id = listed.article_id
) AS looked_up
