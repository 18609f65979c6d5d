-- grain: one row, the positives of an input and those of them without a valid score
-- reads: input_read (passes_where, score_state, is_positive)
-- params: none
-- caution: the score_state of a valid score is NULL
SELECT
  CAST(count_if(is_positive) AS BIGINT) AS n_positive,
  CAST(count_if(is_positive AND score_state IS NOT NULL) AS BIGINT) AS n_lost
FROM input_read
WHERE passes_where
