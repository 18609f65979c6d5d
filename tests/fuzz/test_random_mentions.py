"""Random mentions and places: counts of entity_recognition and geocoding are right, or the run says what is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from fuzz.driver import each_case, fault
from fuzz.inputs import KEY_FORMS, judged, keyed, numbers, ran, rows_of, told, whole_integers, whole_numbers

if TYPE_CHECKING:
    import random
    from pathlib import Path

    import pyarrow as pa

pytestmark = pytest.mark.fuzz

EARTH_RADIUS_KM = 6371.0088
LATITUDES = (0.0, -0.0, 52.0, 52.5, 53.0, 90.0, -90.0, -33.1, 5e-324)
LONGITUDES = (0.0, 4.9, 5.0, 6.1, 180.0, -180.0, 359.9, 360.0, 1e-300)


def test_matched_spans_of_random_mentions_are_right(tmp_path: Path) -> None:
    def mentions(draw: random.Random, form: str) -> tuple[list[Any], dict[str, pa.Array]]:
        spans = sorted(
            {(draw.randrange(3), draw.randrange(3), draw.randrange(1, 3)) for _ in range(draw.randrange(10))}
        )
        return spans, {
            "doc_id": keyed([span[0] for span in spans], form),
            "start": whole_integers(draw, [span[1] for span in spans]),
            "end": whole_integers(draw, [span[1] + span[2] for span in spans]),
        }

    def judge(draw: random.Random) -> str | None:
        form = draw.choice(KEY_FORMS)
        gold, gold_columns = mentions(draw, form)
        predicted, columns = mentions(draw, form)
        scores = [draw.choice((1, 2, 3)) for _ in predicted]
        frames = {"gold": gold_columns, "predicted": columns | {"score": whole_numbers(draw, scores)}}
        thresholds = draw.choice(([1, 2, 3], [0.5, 2.5]))
        stage = {"kind": "entity_recognition", "thresholds": thresholds, "boundary": draw.choice((">=", ">"))}
        outcome = ran(draw, tmp_path, frames, stage)
        if outcome.code:
            unfounded = None if not gold else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        expected = {}
        for threshold in thresholds:
            pairs = zip(predicted, scores, strict=True)
            kept = [span for span, s in pairs if s > threshold or (s == threshold and stage["boundary"] == ">=")]
            tp = len(set(kept) & set(gold))
            expected[threshold] = (tp, len(kept) - tp, len(gold) - tp)
        micro = [row for row in outcome.tables["entity_recognition_scores"].to_dicts() if row["average"] == "micro"]
        seen = {row["threshold"]: (row["tp"], row["fp"], row["fn"]) for row in micro}
        return judged(outcome, seen, expected, frames, stage)

    each_case(25, judge)


def test_places_within_tolerance_are_right(tmp_path: Path) -> None:
    def places(draw: random.Random, form: str) -> dict[str, pa.Array]:
        mentions = sorted({draw.randrange(9) for _ in range(draw.randrange(10))})
        spoilt = draw.choice((0, 0, 0.1))
        return {
            "mention_id": keyed(mentions, form),
            "latitude": numbers(draw, len(mentions), LATITUDES, spoilt=spoilt),
            "longitude": numbers(draw, len(mentions), LONGITUDES, spoilt=spoilt),
        }

    def judge(draw: random.Random) -> str | None:
        form = draw.choice(KEY_FORMS)
        frames = {"gold": places(draw, form), "predicted": places(draw, form)}
        stage: dict[str, Any] = {"kind": "geocoding", "tolerances_km": [0.0, 60.0, 120.0, 20000.0]}
        outcome = ran(draw, tmp_path, frames, stage)
        gold = {row["mention_id"]: _place(row) for row in rows_of(frames["gold"])}
        predicted = {row["mention_id"]: _place(row) for row in rows_of(frames["predicted"])}
        if outcome.code:
            spoilt = any(point is None for point in (*gold.values(), *predicted.values()))
            unfounded = None if spoilt or not gold else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        distances = [_km(point, predicted[key]) for key, point in gold.items() if predicted.get(key) is not None]
        expected = {
            tolerance: (len(gold), len(distances), sum(km <= tolerance for km in distances))
            for tolerance in stage["tolerances_km"]
        }
        rows = outcome.tables["geocoding_scores"].to_dicts()
        seen = {row["tolerance_km"]: (row["n_gold"], row["n_attempted"], row["tp"]) for row in rows}
        return judged(outcome, seen, expected, frames, stage)

    each_case(20, judge)


def _place(row: dict[str, Any]) -> tuple[float, float] | None:
    point = (row["latitude"], row["longitude"])
    return point if all(value is not None and math.isfinite(value) for value in point) else None


def _km(a: Any, b: Any) -> float:  # noqa: ANN401 - two places
    (north_a, east_a), (north_b, east_b) = ((math.radians(value) for value in point) for point in (a, b))
    chord = math.sin((north_b - north_a) / 2) ** 2
    chord += math.cos(north_a) * math.cos(north_b) * math.sin((east_b - east_a) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(chord)))
