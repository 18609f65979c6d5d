-- grain: one row per segment, replicate and bin
-- reads: audit_pairs (segment, replicate, bin, score, is_match)
-- params: none
-- caution: lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(count(*) AS BIGINT) AS n_audited,
  CAST(count(*) FILTER (WHERE is_match) AS BIGINT) AS n_right,
  min(score) AS lowest,
  max(score) AS highest
FROM audit_pairs
GROUP BY segment, replicate, bin
