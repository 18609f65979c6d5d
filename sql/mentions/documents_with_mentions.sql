-- grain: one row per document with a gold or predicted mention
-- reads: gold_read (passes_where, doc_id), predicted_read (passes_where, doc_id)
-- params: none
-- keep: it is read twice
-- caution: where no documents are listed; each is a cluster of its own
SELECT
  doc_id AS cluster
FROM gold_read
WHERE passes_where AND doc_id IS NOT NULL
UNION
SELECT
  doc_id AS cluster
FROM predicted_read
WHERE passes_where AND doc_id IS NOT NULL
