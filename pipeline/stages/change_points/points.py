"""The outcomes of change_points: what every prediction adds, as points and as alarms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from ...base.columns import REPLICATE, THRESHOLD, by_group, doubles, nulls, quotient
from ...base.errors import DataError
from ...base.records import dataclass
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from ...metrics.change_points.alarms import AlarmRule, Cooldown, Leads, changes_by_level, changes_by_score, rate_limits
from ...metrics.change_points.matching import (
    added_any,
    added_as_roerich,
    added_as_ruptures,
    added_nearest,
    added_one_to_one,
    distinct_in_order,
    in_order,
    matched_truth,
)
from ...metrics.change_points.windows import (
    Incidents,
    Margin,
    Points,
    added_to_incidents,
    detected_by_best,
    find_windows,
    mean_over_annotators,
    nearest_truth,
    scores_of,
    with_origin,
)
from ...metrics.change_points.windows import covering as covering_of
from ...metrics.uncertainty.limits import (
    INTERVAL_QUALITY,
    MEANINGS,
    UNDEFINED_INTERVAL,
    Interval,
    clusters_of,
    limit_names,
    marked_in_time,
    of_chosen,
    quality_of_events,
    quality_of_sizes,
    with_limits,
    worst,
)
from ...metrics.uncertainty.proportions import Confusion
from ..stated import counted
from ..stated import with_ratios as ratios_of_counts
from .contract import (
    ALARM_POINTS,
    ALARMS,
    ALARMS_STATED,
    ALL_PREDICTIONS,
    BETWEEN,
    LEADS,
    QUANTILES,
    RATE,
    STATED,
    in_positions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.change_points.alarms import Alerts, Changes, Final
    from ...metrics.change_points.windows import Zones
    from ...metrics.uncertainty.limits import Quality, Reason
    from ...metrics.uncertainty.replicates import Cube, GroupCounts
    from ...sources.bins import Grid
    from .contract import Annotators, ChangePointsParameters, Matching


if TYPE_CHECKING:
    Rule: TypeAlias = Callable[[Points, Points, Margin, NDArray[np.float64] | None], NDArray[np.int64]]

RUN = "run_number"
POSITIONS: dict[bool, pl.DataType] = {False: pl.Float64(), True: pl.Datetime("us")}  # by whether they are times
RULES: dict[str, Rule] = {
    "one_to_one": added_one_to_one,
    "any": added_any,
    "roerich": added_as_roerich,
    "ruptures": added_as_ruptures,
    "nearest": added_nearest,
}
_FIRST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Matcher:
    """How the points of runs become rows of the relation of outcomes.

    Attributes:
        rule: What a true positive is.
        annotators: How several annotators are taken together.
        margin: The margin, in the unit of the positions.
        kind: Type of the positions.
        times: Whether they are microseconds.
        scored: Whether predictions have scores.
        covered: Whether covering is wanted.
        detailed: Whether every match is wanted, with its delay.
    """

    rule: Matching
    annotators: Annotators
    margin: Margin
    kind: type[np.int64 | np.float64]
    times: bool
    scored: bool
    covered: bool
    detailed: bool

    def match(self, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Rows of the relation: one per prediction and one per run, the latter with its true points and covering.

        Args:
            frames: `runs` (run_number, is_first, n_obs if covering is wanted), `predictions` (run_number, position
                and, if scored, score), `annotations` (run_number, position and, with `tcpd`, annotator) and, with
                `tcpd`, `annotators` (run_number, annotator); rows in any order.

        Returns:
            run_number, is_row, is_run, is_always (whether it counts at every threshold), score, tp, n_true, share (of
            the recall of a run averaged over annotators), covering (of runs), and if detailed position, true_position,
            delay.
        """
        runs = frames["runs"].sort(RUN)
        numbers = runs[RUN].to_numpy()
        score = frames["predictions"]["score"].cast(pl.Float64).to_numpy() if self.scored else None
        predictions, order = in_order(*columns_of(frames["predictions"], numbers, self.kind), score)
        score = None if score is None else score[order]
        is_row = runs["is_first"].to_numpy()[predictions.series]
        truth = distinct_in_order(*columns_of(frames["annotations"], numbers, self.kind))
        if self.annotators == "tcpd":
            return self._tcpd(frames, runs, truth, (predictions, score, is_row))
        added = self.added(truth, predictions, score)
        details = self.details(truth, predictions, added, np.ones(len(added), dtype=np.bool_))
        of_predictions = _rows(numbers[predictions.series], is_row, score, added).with_columns(*details)
        covered = self.covering(truth, predictions, runs) if self.covered else None
        return pl.concat([of_predictions, self._of_runs(numbers, truth, covered)], how="diagonal")

    def _tcpd(
        self,
        frames: Mapping[str, pl.DataFrame],
        runs: pl.DataFrame,
        marks: Points,
        scored_predictions: tuple[Points, NDArray[np.float64] | None, NDArray[np.bool_]],
    ) -> pl.DataFrame:
        """Precision against the union and recall averaged over annotators, index 0 added to both sides."""
        # precision: predictions against all annotations of their run, whoever made them
        numbers, every_run = runs[RUN].to_numpy(), np.arange(runs.height)
        truth, predictions = with_origin(marks, every_run), with_origin(scored_predictions[0], every_run)
        is_origin = predictions.position == 0
        score, is_row = _with_origin(is_origin, scored_predictions)
        added = self.added(truth, predictions, score)
        # recall: the same predictions once for every annotator of the series, against the annotations of that one
        pairs = frames["annotators"].sort(RUN, "annotator").with_row_index("pair")
        pair_run = np.searchsorted(numbers, pairs[RUN].to_numpy())
        marks_of_pairs, pair_numbers = frames["annotations"].join(pairs, on=[RUN, "annotator"]), np.arange(pairs.height)
        points_of_pairs = distinct_in_order(*columns_of(marks_of_pairs, pair_numbers, self.kind, "pair"))
        truth_of_pairs = with_origin(points_of_pairs, pair_numbers)
        copied, lengths = _copies(predictions.series, pair_run)
        repeated = Points(np.repeat(pair_numbers, lengths), predictions.position[copied])
        added_in_pairs = self.added(truth_of_pairs, repeated, None if score is None else score[copied])
        # a match is worth one in n true points of its annotator, one in m annotators of its run: the shares of a run
        # add up to its mean recall
        n_true = np.bincount(truth_of_pairs.series, minlength=pairs.height)
        weight = 1 / (n_true * np.bincount(pair_run, minlength=runs.height)[pair_run])
        share = np.bincount(copied, added_in_pairs * weight[repeated.series], minlength=len(added)).astype(np.float64)
        shown = None if score is None else np.where(is_origin, np.nan, score)
        details = self.details(truth, predictions, added, ~is_origin)
        rows = _rows(numbers[predictions.series], is_row, shown, added).with_columns(
            pl.Series("share", share), *details
        )
        covered = None
        if self.covered:
            of_pairs = self.covering(truth_of_pairs, repeated, runs[pl.Series(pair_run)])
            covered = mean_over_annotators(of_pairs, pair_run, runs.height)
        return pl.concat([rows, self._of_runs(numbers, truth, covered)], how="diagonal")

    def added(self, truth: Points, predictions: Points, score: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """What every prediction adds to the true positives; without scores, which are finite, all enter together.

        Raises:
            DataError: positions are too far apart.
        """
        if score is None and not self.detailed:  # only sums are shown, so the nearest need not go first
            score = np.zeros(len(predictions.position))
        try:
            return RULES[self.rule](truth, predictions, self.margin, score)
        except ValueError as error:
            message = f"column position: {error}"
            raise DataError(message, remedy="Number the positions from a nearer origin.") from error

    def details(
        self, truth: Points, predictions: Points, added: NDArray[np.int64], shown: NDArray[np.bool_]
    ) -> list[pl.Series]:
        """The columns `position`, `true_position` and `delay` of predictions, NULL unless shown; none if not wanted."""
        if not self.detailed:
            return []
        if self.rule == "one_to_one":
            number = matched_truth(truth, predictions, self.margin, added)
        else:
            windows = find_windows(truth, predictions, self.margin)
            number = np.where(added > 0, nearest_truth(truth, predictions, windows), -1)
        matched = (number >= 0) & shown
        of_truth, delay = np.zeros(len(added), dtype=truth.position.dtype), np.full(len(added), np.nan)
        of_truth[matched] = truth.position[number[matched]]
        unit = MICROSECONDS_PER_HOUR if self.times else 1
        delay[matched] = (predictions.position[matched] - of_truth[matched]) / unit
        columns = {"position": predictions.position, "true_position": of_truth}
        positions = pl.DataFrame(columns).cast(POSITIONS[self.times])
        masked = positions.select("position", pl.when(pl.Series(matched)).then("true_position").alias("true_position"))
        return [*masked.get_columns(), doubles("delay", delay)]

    def _of_runs(self, numbers: NDArray[np.int64], truth: Points, covered: NDArray[np.float64] | None) -> pl.DataFrame:
        n_true = np.bincount(truth.series, minlength=len(numbers))
        frame = pl.DataFrame({RUN: numbers.astype(np.int32), "n_true": n_true.astype(np.int32)})
        frame = frame.with_columns(is_row=pl.lit(value=False), is_run=pl.lit(value=True), is_always=pl.lit(value=True))
        frame = frame.with_columns(
            tp=pl.lit(0, pl.Int32), share=pl.lit(0, pl.Float64 if self.annotators == "tcpd" else pl.Int8)
        )
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
        return frame if covered is None else frame.with_columns(doubles("covering", covered))

    def covering(self, truth: Points, predictions: Points, runs: pl.DataFrame) -> NDArray[np.float64]:
        """Covering of every run by these predictions; nan where the number of observations is not known."""
        return covering_of(truth, predictions, runs["n_obs"].fill_null(0).to_numpy().astype(np.int64))


def _with_origin(
    is_origin: NDArray[np.bool_], scored_predictions: tuple[Points, NDArray[np.float64] | None, NDArray[np.bool_]]
) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_]]:
    """Scores of the predictions with index 0, which enters first, and whether each is a row of the input."""
    before, score_before, is_row_before = scored_predictions
    elsewhere, was_elsewhere = np.flatnonzero(~is_origin), before.position != 0
    is_row = np.zeros(len(is_origin), dtype=np.bool_)
    is_row[elsewhere] = is_row_before[was_elsewhere]
    # every run has index 0 once, in the order of runs, and it is a row where the input has it
    at_origin = np.flatnonzero(is_origin)
    is_row[at_origin[before.series[~was_elsewhere]]] = is_row_before[~was_elsewhere]
    if score_before is None:
        return None, is_row
    score = np.full(len(is_origin), _FIRST)
    score[elsewhere] = score_before[was_elsewhere]
    return score, is_row


def columns_of(
    frame: pl.DataFrame, numbers: NDArray[np.int64], kind: type[Any], key: str = RUN
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Series and position of every row; a series is the place of its run among the numbers."""
    number = frame[key].to_numpy().astype(np.int64, copy=False)
    without_gap = len(numbers) > 0 and numbers[-1] - numbers[0] + 1 == len(numbers)
    series = number - numbers[0] if without_gap else np.searchsorted(numbers, number)
    return series, frame["position"].to_numpy().astype(kind, copy=False)


def _rows(
    number: NDArray[np.int64], is_row: NDArray[np.bool_], score: NDArray[np.float64] | None, added: NDArray[np.int64]
) -> pl.DataFrame:
    shown = pl.lit(None, dtype=pl.Float64) if score is None else pl.Series(score).fill_nan(None)
    frame = pl.DataFrame({RUN: number.astype(np.int32), "is_row": is_row, "tp": added.astype(np.int32)})
    same = {"is_run": pl.lit(value=False), "n_true": pl.lit(0, pl.Int32), "share": pl.lit(0, pl.Int8)}
    frame = frame.with_columns(shown.alias("score"), **same)
    return frame.with_columns(pl.col("score").is_null().alias("is_always"))


def _copies(series: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the points of wanted series, which may repeat, of points that are sorted by series, and how many."""
    begin, end = np.searchsorted(series, wanted, side="left"), np.searchsorted(series, wanted, side="right")
    lengths = end - begin
    start = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(begin - start, lengths), lengths


def with_ratios(frame: pl.DataFrame, recalls: tuple[str, str] | None) -> pl.DataFrame:
    """The frame with the ratios that are stated of n_true, n_predicted and tp, and why one is `undefined`.

    Where recall is a mean (`tcpd`), of a sum of recalls and their number, F1 is the harmonic mean, as precision and
    recall count different things.
    """
    frame = frame.with_columns(fp=pl.col("n_predicted") - pl.col("tp"), fn=pl.col("n_true") - pl.col("tp"))
    frame = ratios_of_counts(frame, STATED)
    if recalls is None:
        return frame
    precision, recall = frame["precision"], quotient(frame[recalls[0]], frame[recalls[1]])
    harmonic = quotient(2 * precision * recall, precision + recall)
    f1 = pl.when((precision + recall) == 0).then(0.0).otherwise(harmonic)
    return frame.with_columns(recall.alias("recall"), f1.alias("f1"))


# The outcomes of change_points as alarms: what changes at every score, and the first alarm of every true point.


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
        counts = {name: getattr(changes, name) for name in _CHANGES}
        rows = _scored(numbers[changes.series], changes.score, counts)
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
        """The outcome of every prediction where all count, and the first alarms of incidents that last."""
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


# The tables of change points as alarms: false alarms over time at every threshold, and leads at chosen ones.


CRITERION = "criterion"
_LEAD_NAMES = ("share_ahead", "mean_lead", *QUANTILES)
_WORST = {quality: number for number, quality in enumerate(MEANINGS)}
_OF_RECALL = "_quality_of_recall"
_OF_POINT = "_quality_of_point"
_REASON_OF_RECALL = "_undefined_interval_of_recall"


def alarm_tables(
    params: ChangePointsParameters,
    counts: Mapping[str, pl.DataFrame],
    cube: Cube,
    curve: pl.DataFrame,
    points: pl.DataFrame,
) -> dict[str, pl.DataFrame]:
    """The tables of alarms, if there are any, from those of the plan, all counts, the curve and its points."""
    if LEADS not in counts:
        return {}
    keys = list(cube.keys)
    alarms = _alarms(params, cube, curve, keys)
    return {
        ALARMS.name: alarms.select(*keys, *(column.name for column in ALARMS.columns)),
        ALARM_POINTS.name: _points(params, counts[LEADS], alarms, points, keys, in_time=cube.in_time),
    }


def _alarms(params: ChangePointsParameters, cube: Cube, curve: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Counts and rates at every threshold of the curve."""
    qualities = pl.col(INTERVAL_QUALITY).alias(_OF_RECALL), pl.col(UNDEFINED_INTERVAL).alias(_REASON_OF_RECALL)
    recalls = curve.select(*keys, THRESHOLD, "recall", *limit_names(["recall"]), *qualities)
    counts = counted(ALARMS_STATED, cube)
    frame = recalls.join(counts, on=[*keys, THRESHOLD], how="left", nulls_equal=True)
    mean = quotient(frame["lead_sum"], frame["n_alerted"]).alias("mean_lead")
    return _with_rate_limits(params, cube, _with_rates(params, frame.with_columns(mean)), keys)


def _with_rates(params: ChangePointsParameters, frame: pl.DataFrame) -> pl.DataFrame:
    """With the observed time in its unit, the rate, the time between, and why one of them is NULL."""
    per = None if params.per is None else in_positions(params.per)
    frame = frame.with_columns(
        (pl.lit(None, dtype=pl.Float64) if per is None else pl.col("observed_time") / per).alias("observed"),
        pl.lit(None if params.per is None else str(params.per), dtype=pl.String).alias("per"),
    )
    is_timed, counts = pl.col("observed") > 0, {name: pl.col(name) for name in ("n_false", "observed")}
    fractions = {rate.name: rate.fraction(counts) for rate in (RATE, BETWEEN)}
    rates = (
        pl.when(is_timed & (under > 0)).then(over / under).alias(name) for name, (over, under) in fractions.items()
    )
    reason = pl.when(pl.col("per").is_null()).then(pl.lit("no_unit")).when(~is_timed).then(pl.lit("no_time"))
    reason = reason.when(pl.col("n_true") == 0).then(pl.lit("no_positive"))
    reason = reason.when(pl.col("n_alerted") == 0).then(pl.lit("no_alert"))
    reason = reason.when(pl.col("n_false") == 0).then(pl.lit("no_false_alarm"))
    return frame.with_columns(*rates, reason.alias("undefined"))


def _with_rate_limits(
    params: ChangePointsParameters, cube: Cube, frame: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """With limits of the rate and of its reciprocal; a row's quality is the worst of the rate's and of the recall's."""

    def false_alarms(group: GroupCounts) -> NDArray[Any]:
        return group.at_or_above("n_false") + group.totals("n_false_always")[:, None]

    def intervals(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        time = np.asarray(group.totals("observed"), dtype=np.float64) / (
            1 if params.per is None else in_positions(params.per)
        )
        lower, upper = rate_limits(
            false_alarms(group), time, params.confidence, params.resampling, in_time=group.in_time
        )
        undefined = rows[RATE.name].is_null().to_numpy()
        limits = np.where(undefined, np.nan, lower), np.where(undefined, np.nan, upper)
        return {RATE.name: Interval.of(limits, "undefined_ratio")}

    def of_time(group: GroupCounts) -> Confusion:
        false = false_alarms(group)
        observed = np.asarray(group.totals("observed"), dtype=np.float64)[:, None]
        return Confusion(false, observed + 0 * false, 0 * false, 0 * false, in_time=group.in_time)

    clusters = clusters_of(cube.counts, keys, ("observed",))
    frame = with_limits(
        frame,
        cube,
        (RATE.name,),
        intervals,
        wanted=params.is_replicated,
        clusters=marked_in_time(clusters, cube, ["n_predicted"], of_time),
        events=("n_false",),
        resamples=params.drawn_resamples,
    )
    lower, upper = pl.col(f"{RATE.name}_lower"), pl.col(f"{RATE.name}_upper")
    return frame.with_columns(
        pl.when(upper > 0).then(1 / upper).alias(f"{BETWEEN.name}_lower"),
        pl.when(lower > 0).then(1 / lower).alias(f"{BETWEEN.name}_upper"),
        pl.coalesce(UNDEFINED_INTERVAL, _REASON_OF_RECALL).alias(UNDEFINED_INTERVAL),
        _worst_of(INTERVAL_QUALITY, _OF_RECALL),
    )


def _worst_of(*names: str) -> pl.Expr:
    """The worst of some qualities, as `interval_quality`."""
    ranks = (pl.col(name).replace_strict(_WORST, return_dtype=pl.Int64) for name in names)
    worst_rank = pl.min_horizontal(*ranks)
    return worst_rank.replace_strict(dict(enumerate(MEANINGS)), return_dtype=pl.String).alias(INTERVAL_QUALITY)


def _points(
    params: ChangePointsParameters,
    leads: pl.DataFrame,
    alarms: pl.DataFrame,
    points: pl.DataFrame,
    keys: Sequence[str],
    *,
    in_time: bool,
) -> pl.DataFrame:
    """The alarms at every chosen threshold, and where nothing has a score, with the spread of their leads."""
    quality = pl.col(INTERVAL_QUALITY).alias(_OF_POINT)
    chosen = points.filter(pl.col(THRESHOLD).is_not_null()).select(*keys, CRITERION, THRESHOLD, quality)
    unscored = alarms.filter(pl.col(THRESHOLD).is_null()).select(
        *keys, pl.lit(ALL_PREDICTIONS).alias(CRITERION), THRESHOLD, *nulls([_OF_POINT])
    )
    of_points = pl.concat([chosen, unscored.cast(chosen.schema)]).join(
        alarms, on=[*keys, THRESHOLD], how="left", nulls_equal=True
    )
    of_groups = by_group(leads, keys)
    nothing = leads.clear()
    spread = [
        _spread(params, row, of_groups.get(tuple(row[name] for name in keys), nothing), in_time=in_time)
        for row in of_points.select(*keys, CRITERION, THRESHOLD, "n_alerted").iter_rows(named=True)
    ]
    columns = [name for lead in _LEAD_NAMES for name in (lead, *limit_names([lead]))]
    schema = dict.fromkeys(columns, pl.Float64()) | {"_quality": pl.String(), "_reason": pl.String()}
    table = of_points.drop("mean_lead").hstack(pl.DataFrame(spread, schema=schema, orient="row").get_columns())
    table = _of_both(table).with_columns(pl.col(columns).fill_nan(None))
    return table.select(*keys, *(column.name for column in ALARM_POINTS.columns))


def _of_both(table: pl.DataFrame) -> pl.DataFrame:
    """With the worse quality of the two, the first reason, and marks of thresholds chosen on the same data."""
    reason = pl.coalesce(UNDEFINED_INTERVAL, "_reason").alias(UNDEFINED_INTERVAL)
    table = table.with_columns(_worst_of(INTERVAL_QUALITY, "_quality"), reason)
    was_chosen = pl.col(_OF_POINT) == "chosen_on_same_data"
    chosen = of_chosen(table)[INTERVAL_QUALITY]
    return table.with_columns(pl.when(was_chosen).then(chosen).otherwise(INTERVAL_QUALITY).alias(INTERVAL_QUALITY))


def _spread(
    params: ChangePointsParameters, row: Mapping[str, Any], leads: pl.DataFrame, *, in_time: bool
) -> tuple[Any, ...]:
    """Share ahead, mean and quantiles of the leads of a group at a threshold, each with limits; quality and reason."""
    led = replace(Leads.of(*_leads_at(params, row[THRESHOLD], leads)), in_time=in_time)
    reason: Reason = "none"
    limits = dict.fromkeys(_LEAD_NAMES, (np.nan, np.nan))
    if params.is_replicated:
        reason = "one_replicate" if led.number else "undefined_ratio"
    if params.is_replicated and len(led.counts) > 1:
        shares, resampling = list(QUANTILES.values()), params.resampling
        limits["share_ahead"] = led.ahead_limits(params.confidence, resampling)
        limits["mean_lead"] = led.mean_limits(params.confidence, resampling)
        limits |= zip(QUANTILES, led.quantile_limits(shares, params.confidence, resampling), strict=True)
    ahead = led.n_ahead / led.number if led.number else np.nan
    values = {"share_ahead": ahead, "mean_lead": led.mean}
    values |= {name: led.quantile(share) for name, share in QUANTILES.items()}
    has_limits = not np.isnan([limit for pair in limits.values() for limit in pair]).all()
    events = (led.n_ahead, led.number - led.n_ahead)
    of_time: Quality = "correlated_days" if has_limits and led.may_neighbours_be_alike else "good"
    quality = worst([quality_of_sizes(led.sizes), of_time, quality_of_events(*events)]) if has_limits else None
    missing = None if has_limits else reason
    if has_limits and np.isnan([limit for pair in limits.values() for limit in pair]).any():
        missing = "no_limit"
    return (*(number for name in _LEAD_NAMES for number in (values[name], *limits[name])), quality, missing)


def _leads_at(
    params: ChangePointsParameters, threshold: float | None, leads: pl.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leads, replicates and numbers of the rows that count at a threshold, and of those that always do."""
    counts = pl.col(THRESHOLD).is_null()
    if threshold is not None:
        is_score = params.threshold_values is None  # one that equals it may not count
        is_open = is_score and params.boundary == ">"
        above = pl.col(THRESHOLD) > threshold if is_open else pl.col(THRESHOLD) >= threshold
        counts = counts | above
    rows = leads.filter(counts)
    return rows["lead"].to_numpy(), rows[REPLICATE].to_numpy(), rows["n_alerted"].to_numpy()
