-- grain: one row per segment and replicate
-- reads: compared_events (segment, replicate, n_before, n_after, complete)
-- params: none
-- caution: events without a complete window are left out, as their pairs are; an event stands once for each matcher
SELECT
  segment,
  replicate,
  CAST(sum(n_before) AS BIGINT) AS n_before,
  CAST(sum(n_after) AS BIGINT) AS n_after
FROM compared_events
WHERE complete
GROUP BY segment, replicate
