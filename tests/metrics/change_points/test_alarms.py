"""Alarms at every threshold: what detects, repeats or is false, and first alarms, against plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from alarms_by_hand import Terms, by_hand
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.metrics.change_points.alarms import (
    AlarmRule,
    Alerts,
    Changes,
    Cooldown,
    Final,
    changes_by_level,
    changes_by_score,
)
from pipeline.metrics.change_points.matching import added_one_to_one
from pipeline.metrics.change_points.windows import (
    Incidents,
    Margin,
    Points,
    added_to_incidents,
    detected_by_best,
    scores_of,
)

if TYPE_CHECKING:
    from alarms_by_hand import Alarm, Incident
    from numpy.typing import NDArray

    from pipeline.metrics.change_points.windows import Zones


@dataclass(frozen=True)
class Scene:
    """Alarms and incidents of a few series, in order."""

    alarms: list[Alarm]
    incidents: list[Incident]
    margin: Margin
    is_any: bool
    ignores: bool
    cooldown: float | None
    kind: Any

    @property
    def terms(self) -> Terms:
        return Terms(self.margin, self.is_any, self.ignores, self.cooldown)

    @property
    def predictions(self) -> Points:
        series, position = np.array([alarm[0] for alarm in self.alarms], dtype=np.int64), [a[1] for a in self.alarms]
        return Points(series, np.array(position, dtype=self.kind))

    @property
    def score(self) -> NDArray[np.float64]:
        return np.array([alarm[2] for alarm in self.alarms], dtype=np.float64)

    @property
    def truth(self) -> Incidents:
        series = np.array([incident[0] for incident in self.incidents], dtype=np.int64)
        start, end = (np.array([i[side] for i in self.incidents], dtype=self.kind) for side in (1, 2))
        return Incidents.of(series, start, end)

    @property
    def rule(self) -> AlarmRule:
        def added(_: Incidents, predictions: Points, zones: Zones, score: Any) -> NDArray[np.int64]:  # noqa: ANN401
            return (detected_by_best if self.is_any else added_to_incidents)(zones, scores_of(predictions, score))

        return AlarmRule(added, self.is_any, self.ignores, self.margin)

    def changes(self, level: NDArray[np.int64] | None = None, *, scored: bool = True) -> tuple[Changes, Alerts, Final]:
        score = self.score if scored else None
        if self.cooldown is None:
            return changes_by_score(self.truth, self.predictions, self.rule, score)
        level = np.unique(self.score, return_inverse=True)[1] if level is None else level
        return changes_by_level(self.truth, self.predictions, self.rule, score, Cooldown(self.cooldown, level))


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Few positions and few scores, so that ties, repeats, overlaps and nested incidents are common."""
    eighths = draw(st.booleans())
    hour = st.integers(0, 40).map(lambda number: number / 8) if eighths else st.integers(0, 30)
    series = st.integers(0, 2)
    alarms = draw(st.lists(st.tuples(series, hour, st.integers(0, 5)), max_size=14))
    lasting = draw(st.lists(st.tuples(series, hour, hour), max_size=6))
    incidents = {(number, min(ends), max(ends)) for number, *ends in lasting}
    side = st.integers(1, 24).map(lambda number: number / 8) if eighths else st.integers(1, 6)
    return Scene(
        sorted(alarms, key=lambda alarm: (alarm[0], alarm[1], -alarm[2])),
        sorted(incidents),
        Margin(draw(side), draw(side), closed=draw(st.booleans())),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.none() | side),
        np.float64 if eighths else np.int64,
    )


def at(
    scene: Scene, changes: Changes, alerts: Alerts, threshold: float
) -> tuple[dict[str, int], dict[Incident, float]]:
    """The same from the changes."""
    rows = changes.score >= threshold
    names = ("n_predicted", "tp", "n_false", "n_ignored", "n_merged")
    counts = {name: int(getattr(changes, name)[rows].sum()) for name in names}
    signs: dict[tuple[int, int], int] = {}
    for truth, prediction, score, sign in zip(alerts.truth, alerts.prediction, alerts.score, alerts.sign, strict=True):
        if score >= threshold:
            key = int(truth), int(prediction)
            signs[key] = signs.get(key, 0) + int(sign)
    assert set(signs.values()) <= {0, 1}
    present = [key for key, sign in signs.items() if sign]
    assert len({truth for truth, _ in present}) == len(present)
    starts, ends = scene.truth.starts, scene.truth.end
    firsts: dict[Incident, float] = {
        (int(starts.series[truth]), starts.position[truth], ends[truth]): scene.predictions.position[prediction]
        for truth, prediction in present
    }
    return counts, firsts


SWALLOWED = Scene(  # the alarm at 9 enters last, silences the one at 12, and the incident is missed
    [(0, 9, 1), (0, 12, 2), (0, 30, 3)], [(0, 12, 13)], Margin(1, 1, closed=False), False, True, 6, np.int64
)


@given(scenes())
@example(SWALLOWED)
def test_counts_and_first_alarms_at_every_threshold(scene: Scene) -> None:
    changes, alerts, final = scene.changes()
    for threshold in range(7):
        assert at(scene, changes, alerts, threshold) == by_hand(scene.alarms, scene.incidents, scene.terms, threshold)
    counts, firsts = by_hand(scene.alarms, scene.incidents, scene.terms, 0)
    assert final.added.sum() == counts["tp"]
    assert len(final.kept) == len(scene.alarms) - counts["n_merged"]
    assert (final.detects.sum() + final.outside.sum()) <= len(final.kept)
    ends = zip(final.first.zone, final.first.prediction, strict=True)
    assert sorted(firsts.values()) == sorted(scene.predictions.position[prediction] for _, prediction in ends)


@given(scenes(), st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
def test_levels_of_a_grid_count_the_same_at_its_thresholds(scene: Scene, thresholds: list[int]) -> None:
    level = np.searchsorted(sorted(thresholds), scene.score, side="right")
    changes, alerts, _ = scene.changes(level)
    for threshold in thresholds:
        assert at(scene, changes, alerts, threshold) == by_hand(scene.alarms, scene.incidents, scene.terms, threshold)


@given(scenes())
def test_without_scores_all_alarms_enter_together(scene: Scene) -> None:
    changes, alerts, _ = scene.changes(np.zeros(len(scene.alarms), dtype=np.int64), scored=False)
    assert np.isnan(changes.score).all()
    counts, firsts = by_hand(scene.alarms, scene.incidents, scene.terms, 0)
    names = ("n_predicted", "tp", "n_false", "n_ignored", "n_merged")
    assert {name: int(getattr(changes, name).sum()) for name in names} == counts
    assert alerts.sign.sum() == len(firsts)


@given(scenes())
def test_points_count_as_incidents_that_end_where_they_start(scene: Scene) -> None:
    points = Scene(**{**vars(scene), "incidents": sorted({(s, start, start) for s, start, _ in scene.incidents})})
    if scene.is_any or scene.cooldown is not None:
        return
    truth = Incidents.points(points.truth.starts)
    added = added_one_to_one(truth.starts, scene.predictions, scene.margin, scene.score)
    rule = AlarmRule(
        lambda t, p, _, s: added_one_to_one(t.starts, p, scene.margin, s), False, scene.ignores, scene.margin
    )
    changes, _, _ = changes_by_score(truth, scene.predictions, rule, scene.score)
    assert changes.tp.tolist() == added.tolist()
    other, _, _ = points.changes()
    for threshold in range(6):
        rows = changes.score >= threshold
        assert changes.n_predicted[rows].sum() == other.n_predicted[rows].sum()
        assert changes.tp[rows].sum() == other.tp[rows].sum()


@given(scenes())
def test_batches_of_a_few_rows_make_no_difference(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.metrics.change_points.alarms._ROWS_AT_A_TIME", 3)
        patch.setattr("pipeline.metrics.change_points.windows._PAIRS_AT_A_TIME", 2)
        changes, alerts, _ = scene.changes()
    for threshold in range(6):
        assert at(scene, changes, alerts, threshold) == by_hand(scene.alarms, scene.incidents, scene.terms, threshold)
