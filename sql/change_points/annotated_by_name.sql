-- grain: one row per series that somebody looked at
-- reads: annotators (series_id)
-- params: none
-- caution: as annotated, where annotators are told apart
SELECT DISTINCT
  series_id
FROM annotators
