-- The chosen threshold of every group, with the main ratios there: FROM best_threshold('dutch_news').
-- of_stage: a stage, or NULL for all; criterion: as in the tables of operating points.
CREATE OR REPLACE MACRO best_threshold(of_stage := NULL, of_criterion := 'max_f1') AS TABLE
SELECT
  stage,
  grouping,
  "group",
  criterion,
  threshold,
  max(value) FILTER (metric = 'precision') AS precision,
  max(lower) FILTER (metric = 'precision') AS precision_lower,
  max(upper) FILTER (metric = 'precision') AS precision_upper,
  max(value) FILTER (metric = 'recall') AS recall,
  max(lower) FILTER (metric = 'recall') AS recall_lower,
  max(upper) FILTER (metric = 'recall') AS recall_upper,
  max(value) FILTER (metric = 'f1') AS f1,
  max(lower) FILTER (metric = 'f1') AS f1_lower,
  max(upper) FILTER (metric = 'f1') AS f1_upper,
  max(quality) AS quality
FROM metrics
WHERE criterion = of_criterion AND (of_stage IS NULL OR stage = of_stage)
GROUP BY stage, grouping, "group", criterion, threshold
ORDER BY stage, grouping, "group"
