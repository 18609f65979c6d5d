-- grain: one row per retrieved document of a ranking
-- reads: ranked_documents (segment, query_id, doc_id, relevance, _value), rankings (segment, query_id, _ranking)
-- params: none
-- segment: p of ranking, o of ranking
-- caution: _ranking stands for the keys of the ranking; of equal values the greater _name comes first
SELECT
  o._ranking,
  p._value,
  p.query_id,
  p.doc_id,
  p.relevance,
  CAST(p.doc_id AS VARCHAR) AS _name
FROM ranked_documents AS p
INNER JOIN rankings AS o ON p.segment IS NOT DISTINCT FROM o.segment AND p.query_id IS NOT DISTINCT FROM o.query_id
