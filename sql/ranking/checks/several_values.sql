-- grain: one row, the first query whose judged documents differ in a grouping column; none if there is no such query
-- reads: judged_queries (query_id)
-- params: none
-- caution: judged queries are distinct with their grouping columns, so one that is there twice has several values
-- message: input {input}: {names[query_id]} = {query_id} has several values of {groups}
-- remedy: A grouping column of relevance describes the query: give it one value in all rows of a query.
SELECT
  query_id,
  CAST(count(*) AS BIGINT) AS n_rows
FROM judged_queries
WHERE query_id IS NOT NULL
GROUP BY query_id
HAVING count(*) > 1
ORDER BY query_id
LIMIT 1
