-- grain: one row per mention: a matched pair, a false positive or a miss
-- reads: mentions (segment, doc_id, score, is_gold, is_predicted, gold_start, gold_end, gold_text, gold_type, predicted_start, predicted_end, predicted_text, predicted_type)
-- params: $lowest_score
-- caution: at the lowest threshold; predictions below it are not there, and their gold mentions are missed
SELECT
  segment,
  doc_id,
  CASE
    WHEN is_retrieved AND is_gold THEN 'tp'
    WHEN is_retrieved THEN 'fp'
    ELSE 'fn'
  END AS outcome,
  gold_start,
  gold_end,
  gold_text,
  gold_type,
  CASE WHEN is_retrieved THEN predicted_start END AS predicted_start,
  CASE WHEN is_retrieved THEN predicted_end END AS predicted_end,
  CASE WHEN is_retrieved THEN predicted_text END AS predicted_text,
  CASE WHEN is_retrieved THEN predicted_type END AS predicted_type,
  CASE WHEN is_retrieved THEN score END AS score
FROM (
  SELECT
    segment,
    doc_id,
    score,
    is_gold,
    coalesce(is_predicted AND score >= $lowest_score, false) AS is_retrieved,
    gold_start,
    gold_end,
    gold_text,
    gold_type,
    predicted_start,
    predicted_end,
    predicted_text,
    predicted_type
  FROM mentions
) AS judged
WHERE is_gold OR is_retrieved
