-- grain: one row per pair that takes part and clustering
-- reads: pairs_with_both_parents (replicate, second_replicate, score, lag_hours, segment), clusterings (clustering)
-- params: none
-- caution: intersections of two parents fall into 251 replicates: few intersections that have one parent in common
--   share one, since 251 is a prime and 16 is no multiple of it
SELECT
  pairs_with_both_parents.segment,
  clusterings.clustering,
  CAST(
    CASE clusterings.clustering
      WHEN 0 THEN pairs_with_both_parents.replicate
      WHEN 1 THEN pairs_with_both_parents.second_replicate
      ELSE (pairs_with_both_parents.replicate * 16 + pairs_with_both_parents.second_replicate) % 251
    END
    AS SMALLINT
  ) AS replicate,
  pairs_with_both_parents.score,
  pairs_with_both_parents.lag_hours
FROM pairs_with_both_parents
CROSS JOIN clusterings
