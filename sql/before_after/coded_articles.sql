-- grain: one row per coded article
-- reads: gold_articles_read (passes_where, article_id)
-- params: none
-- caution: only pairs of these articles can be annotated
SELECT DISTINCT
  article_id
FROM gold_articles_read
WHERE passes_where
