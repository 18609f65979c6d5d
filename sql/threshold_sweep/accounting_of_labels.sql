-- grain: one row per status of a row of the sheet
-- reads: labels_read (passes_where, label)
-- params: none
-- caution: a label that is empty is a row that nobody has labelled yet
SELECT
  CASE
    WHEN NOT passes_where THEN 'where'
    WHEN trim(coalesce(CAST(label AS VARCHAR), '')) = '' THEN 'not_labelled'
    ELSE 'used'
  END AS status,
  CAST(count(*) AS BIGINT) AS n_rows
FROM labels_read
GROUP BY 1
ORDER BY 1
