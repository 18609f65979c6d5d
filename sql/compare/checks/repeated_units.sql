-- grain: one row for each of the first two units that a system has several times
-- reads: units_read (passes_where, segment)
-- params: none
-- caution: segment is the key of a row; NULL in a grouping column is a value like any other
-- message: input {input}: rows repeat: {examples}
-- remedy: Keep one row per unit and system; name other columns in by.
SELECT
  segment,
  CAST(count(*) AS BIGINT) AS n_rows
FROM units_read
WHERE passes_where
GROUP BY segment
HAVING count(*) > 1
ORDER BY segment
LIMIT 2
