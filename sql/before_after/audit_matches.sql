-- grain: one row per match that an audit can draw
-- reads: used_pairs (segment, replicate, event_id, article_id, score, lag)
-- params: $lowest_score, $after_start, $after_end
-- caution: as audit_sample.sql; id is what the digest of a draw is of
SELECT
  segment,
  replicate,
  event_id,
  article_id,
  score,
  CAST(event_id AS VARCHAR) || ':' || CAST(article_id AS VARCHAR) AS id,
  TRUE AS passes_where
FROM used_pairs
WHERE score >= $lowest_score AND lag >= $after_start AND lag <= $after_end
