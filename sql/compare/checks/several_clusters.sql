-- grain: one row, the first unit whose rows lie in several clusters; none if each unit lies in one
-- reads: units_read (passes_where, segment, unit_cluster)
-- params: none
-- caution: segment is the key of a unit, which has a row for each system
-- message: input {input}: {unit} lies in {n_clusters} values of cluster {cluster!r}
-- remedy: Every unit must lie in one cluster, whatever the system: choose a column that groups whole units.
SELECT
  segment,
  CAST(count(DISTINCT unit_cluster) AS BIGINT) AS n_clusters
FROM units_read
WHERE passes_where
GROUP BY segment
HAVING count(DISTINCT unit_cluster) > 1
ORDER BY segment
LIMIT 1
