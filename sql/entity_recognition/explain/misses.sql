-- grain: one row per gold mention without a retrieved prediction, beside the prediction that it overlaps most
-- reads: explained_rows (segment, doc_id, score, is_gold, is_predicted, gold_start, gold_end, gold_text, gold_type,
--   predicted_start, predicted_end, predicted_text, predicted_type)
-- params: $lowest_score
-- caution: score_of_match is that of the prediction that is matched with it at a lower threshold; mentions that no
--   prediction is matched with at any threshold come first
SELECT
  segment,
  doc_id,
  gold_start,
  gold_end,
  gold_text,
  gold_type,
  score_of_match,
  predicted_start,
  predicted_end,
  predicted_text,
  predicted_type,
  score
FROM (
  SELECT
    g.segment,
    g.doc_id,
    g.gold_start,
    g.gold_end,
    g.gold_text,
    g.gold_type,
    g.score_of_match,
    p.predicted_start,
    p.predicted_end,
    p.predicted_text,
    p.predicted_type,
    p.score,
    row_number() OVER (
      PARTITION BY g.number
      ORDER BY
        least(p.predicted_end, g.gold_end) - greatest(p.predicted_start, g.gold_start) DESC NULLS LAST,
        p.score DESC,
        p.predicted_start,
        p.predicted_end,
        p.predicted_text,
        p.predicted_type
    ) AS place
  FROM (
    SELECT
      segment,
      doc_id,
      gold_start,
      gold_end,
      gold_text,
      gold_type,
      CASE WHEN is_predicted THEN score END AS score_of_match,
      row_number() OVER (ORDER BY doc_id, gold_start, gold_end, gold_text, gold_type, score) AS number
    FROM explained_rows
    WHERE is_gold AND NOT coalesce(is_predicted AND score >= $lowest_score, FALSE)
  ) AS g
  LEFT JOIN explained_rows AS p
    ON g.doc_id = p.doc_id
    AND g.segment IS NOT DISTINCT FROM p.segment
    AND p.is_predicted
    AND p.predicted_start < g.gold_end
    AND p.predicted_end > g.gold_start
) AS beside
WHERE place = 1
ORDER BY score_of_match NULLS FIRST, doc_id, gold_start, gold_end, gold_text, gold_type, segment
