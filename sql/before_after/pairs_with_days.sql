-- grain: one row per pair that takes part
-- reads: used_pairs (replicate, score, lag, time_of_article, segment)
-- params: none
-- caution: days are of UTC, from a time in microseconds; days that are 64 apart share a replicate
SELECT
  segment,
  replicate,
  score,
  lag,
  CAST(
    (CAST(floor(CAST(time_of_article AS DOUBLE) / CAST('86400000000' AS DOUBLE)) AS BIGINT) + 64000000) % 64
    AS SMALLINT
  ) AS second_replicate
FROM used_pairs
