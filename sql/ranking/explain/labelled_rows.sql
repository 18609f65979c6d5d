-- grain: one row per retrieved document of a ranking
-- reads: numbered_documents (_ranking, _value, _name, query_id, doc_id, relevance), rankings (_ranking, segment)
-- params: none
-- caution: where the ranking has the judgements; equal values come in descending order of names
SELECT
  r.segment,
  p.query_id,
  p.doc_id,
  CAST(row_number() OVER (PARTITION BY p._ranking ORDER BY p._value DESC, p._name DESC) AS BIGINT) AS rank,
  p._value AS value,
  p.relevance
FROM numbered_documents AS p
INNER JOIN rankings AS r ON p._ranking = r._ranking
