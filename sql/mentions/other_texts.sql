-- grain: one row: the first place whose text in predictions is not that in gold; none if there is no such place
-- reads: gold_read (passes_where, doc_id, start, end, text),
--   predicted_read (passes_where, segment, doc_id, start, end, text), documents (doc_id)
-- params: none
-- caution: texts that differ in case and blanks alone are the same here; segment stands for the columns of systems
SELECT
  doc_id,
  start,
  "end",
  gold_text,
  predicted_text,
  CAST(count(*) OVER () AS BIGINT) AS n_places
FROM (
  SELECT
    p.segment,
    g.doc_id,
    g.start,
    g."end",
    min(g.text) AS gold_text,
    min(p.text) AS predicted_text
  FROM gold_read AS g
  INNER JOIN documents AS d ON g.doc_id = d.doc_id
  INNER JOIN predicted_read AS p ON g.doc_id = p.doc_id AND g.start = p.start AND g."end" = p."end"
  WHERE g.passes_where AND p.passes_where AND g.text IS NOT NULL AND p.text IS NOT NULL
  GROUP BY p.segment, g.doc_id, g.start, g."end"
  HAVING max(CASE WHEN replace(lower(g.text), ' ', '') = replace(lower(p.text), ' ', '') THEN 1 ELSE 0 END) = 0
) AS places
ORDER BY doc_id, start, "end", predicted_text
LIMIT 1
