-- grain: one row per pair that takes part
-- reads: used_pairs (replicate, score, lag, segment), matchers (matcher, segment)
-- params: none
-- caution: NULL in a column that names the matcher is a matcher like any other
SELECT
  used_pairs.segment,
  used_pairs.replicate,
  used_pairs.score,
  used_pairs.lag,
  matchers.matcher
FROM used_pairs
INNER JOIN matchers ON used_pairs.segment IS NOT DISTINCT FROM matchers.segment
