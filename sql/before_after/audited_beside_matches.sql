-- grain: one row per row of the sheet and match with its keys; one row where no match has them
-- reads: audited_read (passes_where, event_id, article_id, label, probability, stratum, source_file, file_row_number),
--   matches_to_sample (segment, replicate, id, event_id, article_id, score, cell)
-- params: none
-- caution: met_id is NULL where no match that the audit can draw has the keys, which are compared as texts,
--   as those of CSV are
SELECT
  CAST(a.event_id AS VARCHAR) AS label_event,
  CAST(a.article_id AS VARCHAR) AS label_article,
  CAST(a.event_id AS VARCHAR) || ':' || CAST(a.article_id AS VARCHAR) AS label_id,
  CAST(a.label AS VARCHAR) AS label_text,
  CAST(a.probability AS DOUBLE) AS probability,
  CAST(a.stratum AS VARCHAR) AS stratum_name,
  CAST(a.source_file AS VARCHAR) AS sheet_file,
  CAST(a.file_row_number AS BIGINT) AS sheet_row,
  p.id AS met_id,
  p.event_id,
  p.article_id,
  p.score,
  p.cell,
  p.replicate,
  p.segment
FROM audited_read AS a
LEFT JOIN matches_to_sample AS p ON CAST(a.event_id AS VARCHAR) || ':' || CAST(a.article_id AS VARCHAR) = p.id
WHERE a.passes_where
