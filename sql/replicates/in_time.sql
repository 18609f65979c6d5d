-- grain: one row
-- reads: clusters (cluster)
-- params: none
-- caution: that it was asked tells that replicates follow each other in time
SELECT CAST(count(*) AS BIGINT) AS n_clusters
FROM clusters
