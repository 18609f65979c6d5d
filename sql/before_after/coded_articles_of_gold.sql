-- grain: one row per coded article
-- reads: gold (article_id)
-- params: none
-- caution: where the coded articles are not listed, they are those with a gold pair
SELECT DISTINCT
  article_id
FROM gold
