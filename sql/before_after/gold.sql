-- grain: one row per gold pair
-- reads: gold_read (passes_where, event_id, article_id)
-- params: none
-- caution: a pair that is given twice counts once
SELECT DISTINCT
  event_id,
  article_id
FROM gold_read
WHERE passes_where
