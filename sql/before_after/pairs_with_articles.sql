-- grain: one row per pair whose article is listed, whether it passes where or not
-- reads: pairs_read (passes_where, article_id, used_score, lag, segment), articles (article_id, segment)
-- params: none
-- caution: segment stands for the keys, and for the grouping columns and times that are needed
SELECT
  pairs_read.segment,
  articles.segment,
  pairs_read.passes_where,
  pairs_read.used_score AS score,
  pairs_read.lag
FROM pairs_read
INNER JOIN articles ON pairs_read.article_id = articles.article_id
