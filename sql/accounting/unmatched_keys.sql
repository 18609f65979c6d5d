-- grain: one row, how many rows have a key that the other input lacks, with an example of such a key and of the other's
-- reads: input_read (kept, key), other_read (kept, key)
-- params: none
-- caution: rows without a key are not counted
SELECT
  CAST(coalesce(sum(n_rows), 0) AS BIGINT) AS n_rows,
  CAST(coalesce(sum(n_unmatched), 0) AS BIGINT) AS n_unmatched,
  min(unmatched_key) AS unmatched_example,
  (SELECT min(other_read.key) FROM other_read WHERE other_read.kept) AS other_example
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
    WHERE input_read.kept AND input_read.key IS NOT NULL
    GROUP BY input_read.key
  ) AS counted
  LEFT JOIN (
    SELECT DISTINCT other_read.key
    FROM other_read
    WHERE other_read.kept AND other_read.key IS NOT NULL
  ) AS known ON counted.key = known.key
) AS looked_up
