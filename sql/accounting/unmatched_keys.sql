-- grain: one row, how many rows have a key that the other input lacks, with an example of such a key and of the other's
-- reads: input_read (passes_where, key), other_read (passes_where, key)
-- params: none
-- caution: rows without a key are not counted
SELECT
  CAST(coalesce(sum(n_rows), 0) AS BIGINT) AS n_rows,
  CAST(coalesce(sum(n_unmatched), 0) AS BIGINT) AS n_unmatched,
  min(unmatched_key) AS unmatched_example,
  (SELECT min(other_read.key) FROM other_read WHERE other_read.passes_where) AS other_example
FROM (
  SELECT
    counted.n_rows,
    CASE WHEN known.key IS NULL THEN counted.n_rows END AS n_unmatched,
    CASE WHEN known.key IS NULL THEN counted.key END AS unmatched_key
  FROM (
    SELECT
      input_read.key,
      count(*) AS n_rows
    FROM input_read
    WHERE input_read.passes_where AND input_read.key IS NOT NULL
    GROUP BY input_read.key
  ) AS counted
  LEFT JOIN (
    SELECT DISTINCT other_read.key
    FROM other_read
    WHERE other_read.passes_where AND other_read.key IS NOT NULL
  ) AS known ON counted.key = known.key
) AS looked_up
