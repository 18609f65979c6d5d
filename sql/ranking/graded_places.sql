-- grain: one row per judged document of a ranking, whose place is to be found
-- reads: labelled_documents (_ranking, _value, _name, relevance)
-- params: $relevance_level
-- keep: it is read in batches
-- caution: as judged_places.sql, with the relevance, of which measures by name take gains
SELECT
  _ranking,
  _value,
  _name,
  relevance,
  CASE WHEN relevance >= $relevance_level THEN 1 ELSE 0 END AS n_hits,
  CASE WHEN relevance < $relevance_level THEN 1 ELSE 0 END AS n_misses
FROM labelled_documents
WHERE relevance >= 0
