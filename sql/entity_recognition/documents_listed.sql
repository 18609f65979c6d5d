-- grain: one row per segment, replicate and document
-- reads: listed_documents (segment, replicate, doc_id)
-- params: none
-- caution: every document counts in averages, also one without any mention
SELECT
  segment,
  replicate,
  doc_id,
  CAST(0 AS BIGINT) AS n_gold
FROM listed_documents
GROUP BY segment, replicate, doc_id
