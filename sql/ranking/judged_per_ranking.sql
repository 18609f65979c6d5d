-- grain: one row per ranking with judged documents
-- reads: judged_places (_ranking)
-- params: none
-- caution: only judged documents that were retrieved count
SELECT
  _ranking,
  CAST(count(*) AS BIGINT) AS n_rows
FROM judged_places
GROUP BY _ranking
