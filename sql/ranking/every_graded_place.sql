-- grain: one row per judged document of a ranking, whose rank is asked for
-- reads: judged_places (_ranking, _value, _name, relevance, n_hits, n_misses)
-- params: none
-- caution: read in ranges of _ranking; as every_judged_place.sql, with the relevance
SELECT
  _ranking,
  _value,
  _name,
  relevance,
  n_hits,
  n_misses
FROM judged_places
