-- grain: one row per audited pair
-- reads: audited (event_id, article_id)
-- params: none
-- caution: whether this seed draws it or not
SELECT
  event_id,
  article_id
FROM audited
