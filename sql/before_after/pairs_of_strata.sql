-- grain: one row per pair that takes part
-- reads: used_pairs (replicate, score, lag, segment, event_label, article_label)
-- params: none
-- caution: the labels are the texts of the values of the event, and of the article and the pair
SELECT
  segment,
  replicate,
  score,
  lag,
  event_label AS event_stratum,
  article_label AS article_stratum
FROM used_pairs
