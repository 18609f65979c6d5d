-- grain: one row per retrieved document of a ranking
-- reads: numbered_documents (_ranking, _value, _name, query_id, doc_id), rankings (_ranking, segment),
--   judged_documents (query_id, doc_id, relevance)
-- params: none
-- caution: where judgements are an input of their own; equal values come in descending order of names
SELECT
  r.segment,
  p.query_id,
  p.doc_id,
  CAST(row_number() OVER (PARTITION BY p._ranking ORDER BY p._value DESC, p._name DESC) AS BIGINT) AS rank,
  p._value AS value,
  o.relevance
FROM numbered_documents AS p
INNER JOIN rankings AS r ON p._ranking = r._ranking
LEFT JOIN judged_documents AS o ON p.query_id = o.query_id AND p.doc_id = o.doc_id
