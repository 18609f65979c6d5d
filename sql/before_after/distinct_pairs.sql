-- grain: one row per pair of the same event, article and group of pairs: the one with the highest score
-- reads: pairs_of_key (replicate, score, lag, segment)
-- params: none
-- caution: pairs whose key has NULL all stay; pairs_of_key.segment and ranked.segment stand for the key, segment alone
--   for the other columns
SELECT
  ranked.segment,
  segment,
  replicate,
  score,
  lag
FROM (
  SELECT
    pairs_of_key.segment,
    segment,
    replicate,
    score,
    lag,
    row_number() OVER (
      PARTITION BY pairs_of_key.segment
      ORDER BY score DESC NULLS LAST, lag DESC NULLS LAST, segment DESC NULLS LAST
    ) AS rank_in_key
  FROM pairs_of_key
) AS ranked
WHERE rank_in_key = 1 OR ranked.segment IS NULL
