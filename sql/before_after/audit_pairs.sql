-- grain: one row per audited match
-- reads: pairs_of_audit (segment, replicate, event_id, article_id, score, lag_hours),
--   audited (event_id, article_id, is_match)
-- params: $lowest_score, $after_start, $after_end
-- caution: only matches that the sample could have drawn; other audited pairs are a fault, which a check finds
SELECT
  pairs_of_audit.segment,
  pairs_of_audit.replicate,
  pairs_of_audit.event_id,
  pairs_of_audit.article_id,
  pairs_of_audit.score,
  audited.is_match
FROM pairs_of_audit
INNER JOIN audited ON pairs_of_audit.event_id = audited.event_id AND pairs_of_audit.article_id = audited.article_id
WHERE pairs_of_audit.score >= $lowest_score
  AND pairs_of_audit.lag_hours >= $after_start
  AND pairs_of_audit.lag_hours <= $after_end
