-- grain: one row, the first unit that lies in several clusters; none where each lies in one
-- reads: units (unit)
-- params: none
-- caution: units are distinct with their cluster, so one that is there twice has two; its rows would count twice
-- message: input {input}: {names[unit]} = {unit} lies in {n_rows} values of cluster {cluster!r}
-- remedy: Every {names[unit]} must lie in one cluster: choose a column that groups whole units.
SELECT
  unit,
  CAST(count(*) AS BIGINT) AS n_rows
FROM units
WHERE unit IS NOT NULL
GROUP BY unit
HAVING count(*) > 1
ORDER BY unit
LIMIT 1
