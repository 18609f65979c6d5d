-- grain: one row per ranking: segment and query
-- reads: ranked_documents (segment, replicate, query_id)
-- params: none
-- segment: ranking
-- keep: rankings have numbers, which all that reads them must share
-- caution: only what was retrieved has a row here; its number stands for its keys where documents are put in order
SELECT
  segment,
  replicate,
  query_id,
  CAST(
    row_number() OVER (
      ORDER BY segment, query_id, replicate
    ) AS INTEGER
  ) AS _ranking,
  CAST(count(*) AS BIGINT) AS n_retrieved
FROM ranked_documents
GROUP BY segment, replicate, query_id
