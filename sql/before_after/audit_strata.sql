-- grain: one row per segment, replicate, bin and stratum
-- reads: strata_of_audit (segment, replicate, bin, score, stratum)
-- params: none
-- caution: strata are numbered through all groups; lowest and highest are the certificate of the bin
SELECT
  segment,
  replicate,
  bin,
  CAST(stratum AS BIGINT) AS stratum,
  CAST(count(*) AS BIGINT) AS n_rows,
  min(score) AS lowest,
  max(score) AS highest
FROM strata_of_audit
GROUP BY segment, replicate, bin, stratum
