-- grain: one row per status of a prediction
-- reads: predicted_read (passes_where, fault)
-- params: none
-- caution: the first reason that fits counts, in the order of the CASE; it runs only when rows were left out
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN fault IS NOT NULL THEN fault
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM predicted_read
GROUP BY 1
ORDER BY 1
