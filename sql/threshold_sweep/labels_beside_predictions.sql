-- grain: one row per row of the sheet and prediction with its id; one row where no prediction has it
-- reads: labels_read (passes_where, id, label, probability, stratum, source_file, file_row_number), rows_to_sample (id,
--   score, cell, segment, same_id)
-- params: none
-- caution: same_id stands for the condition that the ids of both are equal; met_id is NULL where no prediction has the id
SELECT
  CAST(l.id AS VARCHAR) AS label_id,
  CAST(l.label AS VARCHAR) AS label_text,
  CAST(l.probability AS DOUBLE) AS probability,
  CAST(l.stratum AS VARCHAR) AS stratum_name,
  CAST(l.source_file AS VARCHAR) AS sheet_file,
  CAST(l.file_row_number AS BIGINT) AS sheet_row,
  p.id AS met_id,
  p.score,
  p.cell,
  p.segment
FROM labels_read AS l
LEFT JOIN rows_to_sample AS p ON same_id
WHERE l.passes_where
