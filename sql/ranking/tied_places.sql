-- grain: one row per tie of a ranking with a judged document: the documents of one value, which share its places
-- reads: labelled_documents (segment, query_id, _value, relevance)
-- params: $relevance_level
-- caution: n_before counts the documents of higher values; a document without an equal is a tie of one
SELECT
  segment,
  query_id,
  n_above - n_documents AS n_before,
  n_documents,
  n_hits,
  n_misses
FROM (
  SELECT
    segment,
    query_id,
    n_documents,
    n_hits,
    n_misses,
    CAST(
      sum(n_documents) OVER (
        PARTITION BY segment, query_id
        ORDER BY _value DESC
      ) AS BIGINT
    ) AS n_above
  FROM (
    SELECT
      segment,
      query_id,
      _value,
      CAST(count(*) AS BIGINT) AS n_documents,
      CAST(count_if(relevance >= $relevance_level) AS BIGINT) AS n_hits,
      CAST(count_if(relevance >= 0 AND relevance < $relevance_level) AS BIGINT) AS n_misses
    FROM labelled_documents
    GROUP BY segment, query_id, _value
  ) AS ties
) AS placed
WHERE n_hits + n_misses > 0
ORDER BY segment, query_id, n_before
