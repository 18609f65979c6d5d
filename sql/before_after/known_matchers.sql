-- grain: one row per matcher
-- reads: matchers (matcher, segment)
-- params: none
-- caution: none where no pair tells of any
SELECT
  segment,
  matcher
FROM matchers
