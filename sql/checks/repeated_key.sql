-- grain: one row per repeated key, the first two, with the number of all repeated keys
-- reads: input_read (passes_where, segment)
-- params: none
-- caution: a key with NULL is unknown, so it repeats no other; the window counts what HAVING leaves, before LIMIT
-- message: input {input}: {keys} {repeat}: {examples}{others}
-- remedy: {remedy}
SELECT
  segment,
  CAST(count(*) AS BIGINT) AS n_rows,
  CAST(count(*) OVER () AS BIGINT) AS n_keys
FROM input_read
WHERE passes_where AND segment IS NOT NULL
GROUP BY segment
HAVING count(*) > 1
ORDER BY segment
LIMIT 2
