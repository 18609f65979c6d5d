-- grain: one row, the first position outside its series, with the number of all rows with such a position; none where there is none
-- reads: input_read (passes_where, series_id, position), series_read (passes_where, series_id, n_obs)
-- params: none
-- caution: positions number the observations from 0; nothing lies outside a series whose n_obs is NULL
-- message: input {input}: {names[position]!r} is {position} in series {series_id}, which has {n_obs} observations (n_obs),
--   numbered from 0; in all {outside} outside
-- remedy: Map the number of the observation, for example columns = {{ {field} = {{ sql = "{field} - 1" }} }} for numbers
--   from 1; correct n_obs; or leave the rows out with where.
SELECT
  input_read.series_id,
  input_read.position,
  series_read.n_obs,
  CAST(count(*) OVER () AS BIGINT) AS n_rows
FROM input_read
INNER JOIN series_read ON input_read.series_id = series_read.series_id
WHERE input_read.passes_where
  AND series_read.passes_where
  AND (input_read.position < 0 OR input_read.position >= series_read.n_obs)
  AND NOT series_read.n_obs IS NULL
ORDER BY input_read.series_id, input_read.position
LIMIT 1
