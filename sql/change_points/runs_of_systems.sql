-- grain: one row per run: a system on an evaluated series, with separate annotators once for each of them
-- reads: annotated_series (series_id, segment, cluster, n_obs), systems (segment, was_run),
--   annotators (series_id, segment, is_first), replicates (cluster, replicate)
-- params: none
-- segment: s of series, y of predictions, a of annotations
-- keep: runs have numbers, which all that reads them must share
-- caution: was_run is a condition: that the input runs names the series or, without it, that every system was run on
--   every series; run numbers rise with the series, so that a range of them is a range of series, which files may be
--   sorted by
SELECT
  s.series_id,
  s.segment,
  y.segment,
  a.segment,
  s.n_obs,
  CAST(coalesce(c.replicate, 0) AS SMALLINT) AS replicate,
  coalesce(a.is_first, TRUE) AS is_first,
  row_number() OVER (ORDER BY s.series_id, y.segment, a.segment) AS run_number
FROM annotated_series AS s
INNER JOIN systems AS y ON was_run
LEFT JOIN annotators AS a ON s.series_id = a.series_id
LEFT JOIN replicates AS c ON s.cluster = c.cluster
