-- grain: one row per prediction whose digest is among the lowest of its stratum
-- reads: rows_to_sample (segment, id, score, cell, same_group), strata (cell, stratum, last_digest)
-- params: $seed, $first_score, $last_digest_below
-- caution: same_group stands for the condition that the grouping columns of both are equal; a digest is
--   one of the seed and the id, so it depends on neither rows nor files, but on the engine; rows up to the last digest of
--   a stratum are more than will be drawn, and the first k of them are a random sample of its rows; no stratum of scores
--   below $first_score has a last digest above $last_digest_below, so that few rows need their cell
SELECT
  digested.segment,
  digested.id,
  digested.score,
  strata.stratum,
  digested.digest
FROM (
  SELECT
    segment,
    id,
    score,
    cell,
    CAST(hash(hash(id, $seed)) AS DOUBLE) AS digest
  FROM rows_to_sample
) AS digested
INNER JOIN strata ON digested.cell = strata.cell AND same_group
WHERE
  digested.digest <= strata.last_digest
  AND (digested.score >= $first_score OR digested.digest <= $last_digest_below)
ORDER BY strata.stratum, digested.digest, digested.id
