-- grain: one row per document of the corpus, with its number of predicted mentions as the score by which it is drawn
-- reads: corpus_read (passes_where, segment, doc_id), predicted_read (passes_where, doc_id)
-- params: none
-- caution: predictions of all systems count, whatever their score; the key is there as text, too, as those of CSV are
SELECT
  d.segment,
  d.doc_id,
  CAST(d.doc_id AS VARCHAR) AS id,
  CAST(coalesce(p.n_predicted, 0) AS DOUBLE) AS score,
  d.passes_where
FROM corpus_read AS d
LEFT JOIN (
  SELECT
    doc_id,
    count(*) AS n_predicted
  FROM predicted_read
  WHERE passes_where
  GROUP BY doc_id
) AS p ON d.doc_id = p.doc_id
