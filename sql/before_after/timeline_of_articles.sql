-- grain: one row per article
-- reads: articles (segment)
-- params: none
-- caution: segment stands for the columns that are wanted: the time in microseconds, groups
SELECT
  segment
FROM articles
