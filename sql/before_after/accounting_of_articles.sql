-- grain: one row per status of a pair
-- reads: pairs_read (passes_where, score_state, lag, event_id, article_id), events (event_id, complete), articles (article_id)
-- params: $before_start, $before_end, $after_start, $after_end, $missed
-- caution: as accounting.sql, for runs whose groups come from the articles; pairs of unlisted articles are left out there
SELECT
  CASE
    WHEN NOT pairs_read.passes_where THEN 'where'
    WHEN $missed = 0 AND pairs_read.score_state IS NOT NULL THEN pairs_read.score_state
    WHEN pairs_read.event_id IS NULL THEN 'null_event_id'
    WHEN events.event_id IS NULL THEN 'unlisted_event'
    WHEN NOT events.complete THEN 'incomplete_window'
    WHEN articles.article_id IS NULL THEN 'unlisted_article'
    WHEN pairs_read.lag IS NULL THEN 'null_lag'
    WHEN pairs_read.lag >= $before_start AND pairs_read.lag < $before_end
      THEN coalesce(pairs_read.score_state, 'used')
    WHEN pairs_read.lag >= $after_start AND pairs_read.lag <= $after_end
      THEN coalesce(pairs_read.score_state, 'used')
    ELSE 'outside_window'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM pairs_read
LEFT JOIN events ON pairs_read.event_id = events.event_id
LEFT JOIN articles ON pairs_read.article_id = articles.article_id
GROUP BY 1
ORDER BY 1
