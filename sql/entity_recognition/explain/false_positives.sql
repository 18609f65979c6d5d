-- grain: one row per retrieved prediction without a gold mention, beside the gold mention that it overlaps most
-- reads: explained_rows (segment, doc_id, score, is_gold, is_predicted, predicted_start, predicted_end, predicted_text,
--   predicted_type, gold_start, gold_end, gold_text, gold_type)
-- params: $lowest_score
-- caution: the most confident errors come first; the gold mention beside may be matched with another prediction, and mentions may
--   repeat
SELECT
  segment,
  doc_id,
  predicted_start,
  predicted_end,
  predicted_text,
  predicted_type,
  score,
  gold_start,
  gold_end,
  gold_text,
  gold_type
FROM (
  SELECT
    f.segment,
    f.doc_id,
    f.predicted_start,
    f.predicted_end,
    f.predicted_text,
    f.predicted_type,
    f.score,
    g.gold_start,
    g.gold_end,
    g.gold_text,
    g.gold_type,
    row_number() OVER (
      PARTITION BY f.number
      ORDER BY
        least(f.predicted_end, g.gold_end) - greatest(f.predicted_start, g.gold_start) DESC NULLS LAST,
        g.gold_start,
        g.gold_end,
        g.gold_text,
        g.gold_type
    ) AS place
  FROM (
    SELECT
      segment,
      doc_id,
      predicted_start,
      predicted_end,
      predicted_text,
      predicted_type,
      score,
      row_number() OVER (
        ORDER BY doc_id, predicted_start, predicted_end, predicted_text, predicted_type, score
      ) AS number
    FROM explained_rows
    WHERE is_predicted AND NOT is_gold AND score >= $lowest_score
  ) AS f
  LEFT JOIN explained_rows AS g
    ON f.doc_id = g.doc_id
    AND f.segment IS NOT DISTINCT FROM g.segment
    AND g.is_gold
    AND f.predicted_start < g.gold_end
    AND f.predicted_end > g.gold_start
) AS beside
WHERE place = 1
ORDER BY score DESC, doc_id, predicted_start, predicted_end, predicted_text, predicted_type, segment
