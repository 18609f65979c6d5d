-- grain: one row per row of the sheet and document with its key; one row where no document has it
-- reads: judged_read (passes_where, doc_id, judged, probability, stratum, source_file, file_row_number),
--   corpus_to_sample (segment, id, doc_id, cell)
-- params: none
-- caution: keys are compared as texts, as those of CSV are; met_id is NULL where no document has the key
SELECT
  CAST(j.doc_id AS VARCHAR) AS label_id,
  CAST(j.judged AS VARCHAR) AS label_text,
  CAST(j.probability AS DOUBLE) AS probability,
  CAST(j.stratum AS VARCHAR) AS stratum_name,
  CAST(j.source_file AS VARCHAR) AS sheet_file,
  CAST(j.file_row_number AS BIGINT) AS sheet_row,
  p.id AS met_id,
  p.doc_id,
  p.cell,
  p.segment
FROM judged_read AS j
LEFT JOIN corpus_to_sample AS p ON CAST(j.doc_id AS VARCHAR) = p.id
WHERE j.passes_where
