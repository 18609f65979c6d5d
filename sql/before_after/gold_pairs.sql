-- grain: one row per matcher and coded pair after its event, found by the matcher or missed by it
-- reads: pairs_of_gold (segment, replicate, matcher, event_id, article_id, score, lag), gold (event_id, article_id),
--   coded (article_id), compared_events (segment, replicate, matcher, event_id, complete)
-- params: $after_start, $after_end
-- caution: only pairs of coded articles can be judged; a gold pair that the matcher did not store has a NULL score; a
--   gold pair that it stored outside the window is not looked for
SELECT
  segment,
  replicate,
  matcher,
  event_id,
  article_id,
  score,
  is_gold
FROM (
  SELECT
    pairs_of_gold.segment,
    pairs_of_gold.replicate,
    pairs_of_gold.matcher,
    pairs_of_gold.event_id,
    pairs_of_gold.article_id,
    pairs_of_gold.score,
    gold.event_id IS NOT NULL AS is_gold
  FROM pairs_of_gold
  INNER JOIN coded ON pairs_of_gold.article_id = coded.article_id
  LEFT JOIN gold ON pairs_of_gold.event_id = gold.event_id AND pairs_of_gold.article_id = gold.article_id
  WHERE pairs_of_gold.lag >= $after_start AND pairs_of_gold.lag <= $after_end
  UNION ALL
  SELECT
    compared_events.segment,
    compared_events.replicate,
    compared_events.matcher,
    gold.event_id,
    gold.article_id,
    CAST(NULL AS DOUBLE) AS score,
    TRUE AS is_gold
  FROM gold
  INNER JOIN coded ON gold.article_id = coded.article_id
  INNER JOIN compared_events ON gold.event_id = compared_events.event_id
  LEFT JOIN pairs_of_gold
    ON gold.event_id = pairs_of_gold.event_id
    AND gold.article_id = pairs_of_gold.article_id
    AND compared_events.matcher = pairs_of_gold.matcher
  WHERE compared_events.complete AND pairs_of_gold.event_id IS NULL
) AS judged
