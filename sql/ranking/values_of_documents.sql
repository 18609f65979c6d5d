-- grain: one row per retrieved document of a ranking
-- reads: numbered_documents (_ranking, _value)
-- params: none
-- caution: read in ranges of _ranking; the judged documents are ranked among these, with ties
SELECT
  _ranking,
  _value
FROM numbered_documents
