-- grain: one row, the first label of a pair that the sample cannot hold, with the number of all; none where all is well
-- reads: audited (event_id, article_id), audit_found (event_id, article_id)
-- params: none
-- caution: a sample holds matches after their event, from the score of the audit on
-- message: input {input}: {n_rows:,} pairs are no match after their event with a score from {threshold:g} on, so the
--   sample cannot hold them (event_id = {event_id}, article_id = {article_id})
-- remedy: Give back the labels of before_after_audit_sample, drawn from the same pairs with the same audit.
SELECT
  event_id,
  article_id,
  CAST(count(*) OVER () AS BIGINT) AS n_rows
FROM (
  SELECT
    audited.event_id,
    audited.article_id
  FROM audited
  LEFT JOIN audit_found ON audited.event_id = audit_found.event_id AND audited.article_id = audit_found.article_id
  WHERE audit_found.event_id IS NULL
) AS outside
ORDER BY event_id, article_id
LIMIT 1
