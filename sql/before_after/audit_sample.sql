-- grain: one row per drawn match
-- reads: used_pairs (event_id, article_id, score, lag)
-- params: $lowest_score, $after_start, $after_end, $seed, $size
-- caution: the order of draws is that of a digest of the seed and the keys, so it depends on neither rows nor files, and
--   the first k draws are a sample of size k
SELECT
  draw,
  event_id,
  article_id,
  score,
  lag / CAST('3600000000' AS DOUBLE) AS lag_hours
FROM (
  SELECT
    event_id,
    article_id,
    score,
    lag,
    CAST(
      row_number() OVER (
        ORDER BY
          md5(CAST($seed AS VARCHAR) || ':' || CAST(event_id AS VARCHAR) || ':' || CAST(article_id AS VARCHAR)),
          event_id,
          article_id
      )
      AS BIGINT
    ) AS draw
  FROM used_pairs
  WHERE score >= $lowest_score AND lag >= $after_start AND lag <= $after_end
) AS drawn
WHERE draw <= $size
