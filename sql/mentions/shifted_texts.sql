-- grain: one row: the first text whose place in predictions is that in gold, counted otherwise; none if there is none
-- reads: gold_read (passes_where, doc_id, start, end, text),
--   predicted_read (passes_where, segment, doc_id, start, end, text), documents (doc_id)
-- params: $farthest
-- caution: only texts with as many places in a document on either side, in their order. Two places that overlap cannot
--   both have a text, unless it repeats itself; nor can a place be longer than the other and lie behind it, or be shorter
--   than its text. Else all texts of a document, at least two, must be moved alike. segment stands for the columns of systems
SELECT
  doc_id,
  text,
  gold_start,
  gold_end,
  predicted_start,
  predicted_end,
  CAST(count(*) OVER () AS BIGINT) AS n_texts
FROM (
  SELECT
    g.doc_id,
    g.text,
    g.start AS gold_start,
    g."end" AS gold_end,
    p.start AS predicted_start,
    p."end" AS predicted_end,
    p.start - g.start AS shift,
    (p."end" - p.start) - (g."end" - g.start) AS widening,
    count(*) OVER (PARTITION BY p.segment, g.doc_id) AS n_of_document,
    count(*) OVER (PARTITION BY p.segment, g.doc_id, p.start - g.start, p."end" - g."end") AS n_moved_alike
  FROM (
    SELECT
      doc_id,
      text,
      start,
      "end",
      row_number() OVER (PARTITION BY doc_id, text ORDER BY start, "end") AS number,
      count(*) OVER (PARTITION BY doc_id, text) AS n_alike
    FROM (
      SELECT DISTINCT
        doc_id,
        text,
        start,
        "end"
      FROM gold_read
      WHERE passes_where AND text <> '' AND start >= -$farthest AND start <= "end" AND "end" <= $farthest
    ) AS gold_places
  ) AS g
  INNER JOIN documents AS d ON g.doc_id = d.doc_id
  INNER JOIN (
    SELECT
      segment,
      doc_id,
      text,
      start,
      "end",
      row_number() OVER (PARTITION BY segment, doc_id, text ORDER BY start, "end") AS number,
      count(*) OVER (PARTITION BY segment, doc_id, text) AS n_alike
    FROM (
      SELECT DISTINCT
        segment,
        doc_id,
        text,
        start,
        "end"
      FROM predicted_read
      WHERE passes_where AND text <> '' AND start >= -$farthest AND start <= "end" AND "end" <= $farthest
    ) AS predicted_places
  ) AS p ON g.doc_id = p.doc_id AND g.text = p.text AND g.number = p.number AND g.n_alike = p.n_alike
) AS placed
WHERE CASE
  WHEN widening <> 0
    THEN shift * widening > 0
      OR (
        shift = 0
        AND (gold_end - gold_start < length(text) OR predicted_end - predicted_start < length(text))
      )
  WHEN shift = 0 THEN FALSE
  WHEN predicted_start < gold_end AND gold_start < predicted_end
    AND instr(substring(text, 2), substring(text, 1, length(text) - CAST(abs(shift) AS INT))) = 0
    THEN TRUE
  ELSE n_of_document > 1 AND n_moved_alike = n_of_document
END
ORDER BY doc_id, gold_start, gold_end, predicted_start
LIMIT 1
