-- grain: one row per document with a mention
-- reads: replicates (cluster, replicate)
-- params: none
-- keep: as documents_listed.sql
-- caution: where no documents are listed; _document numbers them in the order of their ids
SELECT
  cluster AS doc_id,
  replicate,
  CAST(row_number() OVER (ORDER BY cluster) AS BIGINT) AS _document
FROM replicates
