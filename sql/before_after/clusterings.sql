-- grain: one row per way in which pairs are clustered
-- reads: none
-- params: none
-- caution: 0 by event, 1 by the second parent of the pair, 2 by both together
SELECT 0 AS clustering
UNION ALL
SELECT 1 AS clustering
UNION ALL
SELECT 2 AS clustering
