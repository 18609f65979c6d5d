-- grain: one row per audited match
-- reads: used_pairs (segment, replicate, event_id, article_id, score, lag),
--   audited (event_id, article_id, is_match)
-- params: $lowest_score, $after_start, $after_end
-- caution: only matches that the sample could have drawn; other audited pairs are a fault, which a check finds
SELECT
  used_pairs.segment,
  used_pairs.replicate,
  used_pairs.event_id,
  used_pairs.article_id,
  used_pairs.score,
  audited.is_match
FROM used_pairs
INNER JOIN audited ON used_pairs.event_id = audited.event_id AND used_pairs.article_id = audited.article_id
WHERE used_pairs.score >= $lowest_score
  AND used_pairs.lag >= $after_start
  AND used_pairs.lag <= $after_end
