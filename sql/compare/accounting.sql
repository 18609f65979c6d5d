-- grain: one row per status of a row
-- reads: units_read (passes_where)
-- params: none
-- caution: a unit without its key or its system has stopped the stage before; it runs only when rows were left out
SELECT
  CASE WHEN passes_where THEN 'used' ELSE 'where' END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM units_read
GROUP BY 1
ORDER BY 1
