-- grain: one row per pair that takes part
-- reads: used_pairs (replicate, score, lag_hours, segment, event_label, article_label)
-- params: none
-- caution: the labels are the texts of the values of the event, and of the article and the pair
SELECT
  segment,
  replicate,
  score,
  lag_hours,
  event_label AS event_stratum,
  article_label AS article_stratum
FROM used_pairs
