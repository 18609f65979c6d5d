-- grain: one row per segment, replicate and document with a prediction of the lowest score of its segment
-- reads: mentions (segment, replicate, _document, score, is_gold, is_predicted)
-- params: none
-- caution: where every score is a threshold, the lowest one does not retrieve these with the boundary >
SELECT
  segment,
  replicate,
  _document,
  min(score) AS lowest,
  CAST(count_if(is_gold) AS BIGINT) AS tp,
  CAST(count_if(NOT is_gold) AS BIGINT) AS fp
FROM (
  SELECT
    segment,
    replicate,
    _document,
    score,
    is_gold,
    rank() OVER (PARTITION BY segment ORDER BY score) AS place
  FROM mentions
  WHERE is_predicted
) AS in_order
WHERE place = 1
GROUP BY segment, replicate, _document
