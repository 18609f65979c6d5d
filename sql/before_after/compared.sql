-- grain: one row per segment and replicate
-- reads: events (segment, replicate, n_before, n_after, complete)
-- params: none
-- caution: events without a complete window are left out, as their pairs are
SELECT
  segment,
  replicate,
  CAST(sum(n_before) AS BIGINT) AS n_before,
  CAST(sum(n_after) AS BIGINT) AS n_after
FROM events
WHERE complete
GROUP BY segment, replicate
