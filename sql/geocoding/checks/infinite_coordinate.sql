-- grain: one row, the first file in which a coordinate is infinite; none where there is none
-- reads: input_read (passes_where, score_state, latitude, longitude, source_file, file_row_number)
-- params: none
-- caution: n_exchangeable rows would be on the Earth with latitude and longitude exchanged
-- message: input {input}: column {names[coordinate]!r} is infinite in {rows} of
--   {place}
-- remedy: {remedy}
SELECT
  source_file,
  min(file_row_number) AS first_row,
  CAST(count(*) AS BIGINT) AS n_rows,
  CAST(count_if(longitude <= 90 AND longitude >= -90 AND latitude >= -180 AND latitude <= 360) AS BIGINT)
    AS n_exchangeable
FROM input_read
WHERE passes_where AND score_state = 'infinite_score'
GROUP BY source_file
ORDER BY source_file
LIMIT 1
