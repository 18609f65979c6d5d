"""The outcomes of change_points as alarms: what changes at every score, and the first alarm of every true point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from ...metrics.change_points.alarms import AlarmRule, changes_by_score
from ...metrics.change_points.order import distinct_in_order, in_order
from ...metrics.change_points.silenced_alarms import Cooldown, changes_by_level
from ...metrics.change_points.windows import Points, scores_of
from ...metrics.change_points.zones import Incidents, added_to_incidents, detected_by_best
from ...records import dataclass
from ...tables.columns import doubles
from .points import POSITIONS, RUN, columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...metrics.change_points.alarms import Alerts, Changes, Final
    from ...metrics.change_points.zones import Zones
    from ...sources.bins import Grid
    from .points import Matcher

FALSE, TRUE, REPEAT, MERGED = range(4)  # what becomes of a prediction where all of them count
END_OF = "position_of_end"
_CHANGES = ("tp", "n_predicted", "n_false", "n_ignored", "n_merged")
_ROW = {  # columns of the relation with their types, and what they are where a row says nothing
    RUN: (pl.Int32(), 0),
    "is_prediction": (pl.Boolean(), False),
    "is_row": (pl.Boolean(), False),
    "is_run": (pl.Boolean(), False),
    "is_always": (pl.Boolean(), True),
    "score": (pl.Float64(), None),
    "n_true": (pl.Int32(), 0),
    **{name: (pl.Int32(), 0) for name in _CHANGES},
    "n_alerted": (pl.Int32(), 0),
    "n_ahead": (pl.Int32(), 0),
    "lead": (pl.Float64(), None),
}


@dataclass(frozen=True)
class AlarmMatcher:
    """How the points of runs become rows of the relation of outcomes, where they are alarms.

    Attributes:
        matcher: How points are matched.
        lasting: Whether true points are incidents that last.
        ignores_repeats: Whether repeats count neither as true nor as false.
        cooldown: In the unit of the positions; None: every prediction is an alarm.
        grid: The thresholds, between which the state is not wanted; None: every score is one.
    """

    matcher: Matcher
    lasting: bool
    ignores_repeats: bool
    cooldown: float | None
    grid: Grid | None

    def match(self, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Rows of the relation: changes of counts at scores, first alarms, runs, and if detailed what becomes of each.

        Args:
            frames: As for `Matcher.match`; `annotations` of incidents that last also have `position_of_end`.

        Returns:
            run_number, is_prediction (one row for each, with its score), is_row, is_run, is_always (whether it
            counts at every threshold), score, n_true (of runs), tp, n_predicted, n_false, n_ignored and n_merged
            (by how much they change), n_alerted (1: a true point has a first alarm, -1: no longer this one) with
            its lead, n_ahead (the same if the lead is above 0), covering (of runs), and if detailed position,
            true_position, delay and status.
        """
        runs = frames["runs"].sort(RUN)
        numbers = runs[RUN].to_numpy()
        score = frames["predictions"]["score"].cast(pl.Float64).to_numpy() if self.matcher.scored else None
        predictions, order = in_order(*columns_of(frames["predictions"], numbers, self.matcher.kind), score)
        score = None if score is None else score[order]
        truth = self._truth(frames["annotations"], numbers)
        try:
            changes, alerts, final = self._changes(truth, predictions, score)
        except ValueError as error:
            message = f"column position: {error}"
            raise DataError(message, remedy="Number the positions from a nearer origin.") from error
        rows = self._of_changes(numbers, changes)
        size = len(predictions.position)
        is_row = np.zeros(rows.height, dtype=np.bool_)
        is_row[:size] = runs["is_first"].to_numpy()[predictions.series]
        rows = rows.with_columns(is_prediction=pl.int_range(pl.len()) < size, is_row=pl.Series(is_row))
        tables = [
            rows,
            self._of_alerts(numbers, truth, predictions, alerts),
            self._of_runs(runs, truth, predictions, final),
        ]
        if self.matcher.detailed:
            details, pairs = self._details(numbers, truth, predictions, score, final)
            missing = pl.DataFrame(schema=details.schema).clear(rows.height - size)
            tables[0] = rows.with_columns(pl.concat([details, missing]))
            tables.append(pairs)
        return pl.concat(tables, how="diagonal")

    def _truth(self, annotations: pl.DataFrame, numbers: NDArray[np.int64]) -> Incidents:
        series, start = columns_of(annotations, numbers, self.matcher.kind)
        if not self.lasting:
            return Incidents.points(distinct_in_order(series, start))
        end = columns_of(annotations.with_columns(position=END_OF), numbers, self.matcher.kind)[1]
        return Incidents.of(series, start, end)

    def _changes(
        self, truth: Incidents, predictions: Points, score: NDArray[np.float64] | None
    ) -> tuple[Changes, Alerts, Final]:
        is_any = self.matcher.rule == "any"
        rule = AlarmRule(self._added, is_any, self.ignores_repeats, self.matcher.margin)
        if self.cooldown is None:
            return changes_by_score(truth, predictions, rule, score)
        if score is None:
            level = np.zeros(len(predictions.position), dtype=np.int64)
        else:
            level = np.unique(score, return_inverse=True)[1] if self.grid is None else self.grid.bins(score)
        return changes_by_level(truth, predictions, rule, score, Cooldown(self.cooldown, level))

    def _added(
        self, truth: Incidents, predictions: Points, zones: Zones, score: NDArray[np.float64] | None
    ) -> NDArray[np.int64]:
        if not self.lasting:
            return self.matcher.added(truth.starts, predictions, score)
        rule = detected_by_best if self.matcher.rule == "any" else added_to_incidents
        return rule(zones, scores_of(predictions, score))

    def _lead(
        self, truth: Incidents, predictions: Points, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Start minus alarm of pairs of a true point and a prediction; hours for times."""
        unit = MICROSECONDS_PER_HOUR if self.matcher.times else 1
        return np.asarray((truth.starts.position[pairs[0]] - predictions.position[pairs[1]]) / unit)

    def _of_changes(self, numbers: NDArray[np.int64], changes: Changes) -> pl.DataFrame:
        counts = {name: getattr(changes, name) for name in _CHANGES}
        return _scored(numbers[changes.series], changes.score, counts)

    def _of_alerts(
        self, numbers: NDArray[np.int64], truth: Incidents, predictions: Points, alerts: Alerts
    ) -> pl.DataFrame:
        lead = self._lead(truth, predictions, (alerts.truth, alerts.prediction))
        run = numbers[truth.starts.series[alerts.truth]]
        columns = {"n_alerted": alerts.sign, "n_ahead": np.where(lead > 0, alerts.sign, 0), "lead": lead}
        return _scored(run, alerts.score, columns)

    def _of_runs(self, runs: pl.DataFrame, truth: Incidents, predictions: Points, final: Final) -> pl.DataFrame:
        n_true = np.bincount(truth.starts.series, minlength=runs.height)
        frame = _frame({RUN: runs[RUN].to_numpy(), "n_true": n_true, "is_run": np.ones(runs.height, dtype=np.bool_)})
        if not self.matcher.covered:
            return frame
        kept = Points(predictions.series[final.kept], predictions.position[final.kept])
        covered = self.matcher.covering(truth.starts, kept, runs)
        return frame.with_columns(doubles("covering", covered))

    def _details(
        self,
        numbers: NDArray[np.int64],
        truth: Incidents,
        predictions: Points,
        score: NDArray[np.float64] | None,
        final: Final,
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What becomes of every prediction where all count, and for incidents that last their first alarms."""
        size, kept = len(predictions.position), final.kept
        status = np.full(size, MERGED, dtype=np.int8)
        repeats = REPEAT if self.ignores_repeats else FALSE
        status[kept] = np.where(final.detects, TRUE, np.where(final.outside, FALSE, repeats))
        positions, pairs = pl.DataFrame({"position": predictions.position}).cast(POSITIONS[self.matcher.times]), []
        nothing = [
            pl.lit(None, POSITIONS[self.matcher.times]).alias("true_position"),
            pl.lit(None, pl.Float64).alias("delay"),
        ]
        if self.lasting:
            details = positions.with_columns(*nothing)
            pairs = [self._pairs(numbers, truth, predictions, score, final)]
        else:
            remaining = Points(predictions.series[kept], predictions.position[kept])
            matched = self.matcher.details(truth.starts, remaining, final.added, np.ones(len(kept), dtype=np.bool_))
            row = np.full(size, len(kept))
            row[kept] = np.arange(len(kept))
            known = pl.DataFrame(matched[1:])
            padded = pl.concat([known, known.clear(1)])
            details = pl.concat([positions, padded[row]], how="horizontal")
        details = details.with_columns(pl.Series("status", status))
        empty = _frame({RUN: np.empty(0, dtype=np.int64)})
        return details, pl.concat([empty, *pairs], how="diagonal")

    def _pairs(
        self,
        numbers: NDArray[np.int64],
        truth: Incidents,
        predictions: Points,
        score: NDArray[np.float64] | None,
        final: Final,
    ) -> pl.DataFrame:
        """A row for every incident with an alarm: the first one, and how much later than the start it comes."""
        zone, prediction = final.first.zone, final.first.prediction
        columns = {"position": predictions.position[prediction], "true_position": truth.starts.position[zone]}
        delay = -self._lead(truth, predictions, (zone, prediction))
        shown = np.full(len(zone), np.nan) if score is None else score[prediction]
        rows = _scored(numbers[truth.starts.series[zone]], shown, {})
        positions = pl.DataFrame(columns).cast(POSITIONS[self.matcher.times])
        return pl.concat([rows, positions, pl.DataFrame({"delay": delay + 0.0})], how="horizontal")


def _scored(run: NDArray[np.int64], score: NDArray[np.float64], columns: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Rows with scores; those without one count at every threshold."""
    frame = _frame({RUN: run, "score": score, **columns})
    frame = frame.with_columns(pl.col("score").fill_nan(None))
    return frame.with_columns(is_always=pl.col("score").is_null())


def _frame(columns: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Rows of the relation with these columns, and the others as they are where a row says nothing."""
    given = pl.DataFrame(dict(columns))
    return given.select(
        pl.col(name).cast(kind) if name in columns else pl.lit(default, dtype=kind).alias(name)
        for name, (kind, default) in _ROW.items()
    )
