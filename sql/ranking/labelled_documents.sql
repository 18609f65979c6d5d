-- grain: one row per retrieved document with a judgement
-- reads: numbered_documents (_ranking, query_id, doc_id, _value, _name), judged_documents (query_id, doc_id, relevance)
-- params: none
-- caution: where judgements are an input of their own
SELECT
  p._ranking,
  p._value,
  p._name,
  o.relevance
FROM numbered_documents AS p
INNER JOIN judged_documents AS o ON p.query_id = o.query_id AND p.doc_id = o.doc_id
