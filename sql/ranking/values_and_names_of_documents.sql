-- grain: one row per retrieved document of a ranking
-- reads: numbered_documents (_ranking, _value, _name)
-- params: none
-- caution: read in ranges of _ranking; the judged documents are ranked among these, equal values by name
SELECT
  _ranking,
  _value,
  _name
FROM numbered_documents
