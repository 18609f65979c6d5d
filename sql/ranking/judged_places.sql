-- grain: one row per judged document of a ranking, whose place is to be found
-- reads: labelled_documents (_ranking, _value, _name, relevance)
-- params: $relevance_level
-- keep: it is read in batches
-- caution: a negative relevance means not judged, as in trec_eval; a repeated document takes as many places
SELECT
  _ranking,
  _value,
  _name,
  CASE WHEN relevance >= $relevance_level THEN 1 ELSE 0 END AS n_hits,
  CASE WHEN relevance < $relevance_level THEN 1 ELSE 0 END AS n_misses
FROM labelled_documents
WHERE relevance >= 0
