"""The outcomes of change_points: what every prediction adds to the true positives, and what every run has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from ...metrics.change_points.matching import (
    added_any,
    added_as_roerich,
    added_as_ruptures,
    added_nearest,
    added_one_to_one,
    matched_truth,
)
from ...metrics.change_points.order import distinct_in_order, in_order
from ...metrics.change_points.segmentation import covering as covering_of
from ...metrics.change_points.segmentation import mean_over_annotators, with_origin
from ...metrics.change_points.windows import Margin, Points, find_windows, nearest_truth
from ...records import dataclass
from ...tables.columns import doubles, quotient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from .contract import Annotators, Matching


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
        copies = _copies(predictions.series, pair_run)
        repeated = Points(np.repeat(pair_numbers, copies.lengths), predictions.position[copies.index])
        added_in_pairs = self.added(truth_of_pairs, repeated, None if score is None else score[copies.index])
        # a match is worth one in n true points of its annotator, one in m annotators of its run: the shares of a run
        # add up to its mean recall
        n_true = np.bincount(truth_of_pairs.series, minlength=pairs.height)
        weight = 1 / (n_true * np.bincount(pair_run, minlength=runs.height)[pair_run])
        share = np.bincount(copies.index, added_in_pairs * weight[repeated.series], minlength=len(added)).astype(
            np.float64
        )
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
        """What every prediction adds to the true positives.

        Args:
            truth: True points.
            predictions: Predictions.
            score: Finite scores of the predictions; None: all enter together.

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
        """The columns `position`, `true_position` and `delay` of every prediction; none if they are not wanted.

        Args:
            truth: True points.
            predictions: Predictions.
            added: What each adds to the true positives.
            shown: Whether its match is shown.
        """
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

    @property
    def _no_share(self) -> pl.Expr:
        return pl.lit(0, pl.Float64 if self.annotators == "tcpd" else pl.Int8)

    def _of_runs(self, numbers: NDArray[np.int64], truth: Points, covered: NDArray[np.float64] | None) -> pl.DataFrame:
        n_true = np.bincount(truth.series, minlength=len(numbers))
        frame = pl.DataFrame({RUN: numbers.astype(np.int32), "n_true": n_true.astype(np.int32)})
        frame = frame.with_columns(is_row=pl.lit(value=False), is_run=pl.lit(value=True), is_always=pl.lit(value=True))
        frame = frame.with_columns(tp=pl.lit(0, pl.Int32), share=self._no_share)
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
        return frame if covered is None else frame.with_columns(doubles("covering", covered))

    def covering(self, truth: Points, predictions: Points, runs: pl.DataFrame) -> NDArray[np.float64]:
        """Covering of every run by these predictions; nan where the number of observations is not known."""
        return covering_of(truth, predictions, runs["n_obs"].fill_null(0).to_numpy().astype(np.int64))


def _with_origin(
    is_origin: NDArray[np.bool_],
    scored_predictions: tuple[Points, NDArray[np.float64] | None, NDArray[np.bool_]],
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
    number: NDArray[np.int64],
    is_row: NDArray[np.bool_],
    score: NDArray[np.float64] | None,
    added: NDArray[np.int64],
) -> pl.DataFrame:
    shown = pl.lit(None, dtype=pl.Float64) if score is None else pl.Series(score).fill_nan(None)
    frame = pl.DataFrame({RUN: number.astype(np.int32), "is_row": is_row, "tp": added.astype(np.int32)})
    same = {"is_run": pl.lit(value=False), "n_true": pl.lit(0, pl.Int32), "share": pl.lit(0, pl.Int8)}
    frame = frame.with_columns(shown.alias("score"), **same)
    return frame.with_columns(pl.col("score").is_null().alias("is_always"))


@dataclass(frozen=True)
class _Copies:
    """Points of series, once for every annotator of the series.

    Attributes:
        index: Number of the point of every copy.
        lengths: Copies of every annotator.
    """

    index: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _copies(series: NDArray[np.int64], wanted: NDArray[np.int64]) -> _Copies:
    """The points of wanted series, which may repeat, of points that are sorted by series."""
    begin, end = np.searchsorted(series, wanted, side="left"), np.searchsorted(series, wanted, side="right")
    lengths = end - begin
    start = np.cumsum(lengths) - lengths
    index = np.arange(lengths.sum()) + np.repeat(begin - start, lengths)
    return _Copies(index, lengths)


# Precision, recall and F1 of counts, each rounded once.


def with_ratios(frame: pl.DataFrame, recalls: tuple[str, str] | None) -> pl.DataFrame:
    """The frame with precision, recall, f1, and why one is `undefined`.

    Args:
        frame: Columns n_true, n_predicted, tp.
        recalls: Columns of a sum of recalls and of their number, where recall is a mean (`tcpd`); F1 then is the
            harmonic mean, as precision and recall count different things, else it comes from the counts.
    """
    precision = quotient(frame["tp"], frame["n_predicted"]).alias("precision")
    if recalls is None:
        recall = quotient(frame["tp"], frame["n_true"])
        f1 = quotient(2 * frame["tp"], frame["n_predicted"] + frame["n_true"])
    else:
        recall = quotient(frame[recalls[0]], frame[recalls[1]])
        f1 = quotient(2 * precision * recall, precision + recall)
        f1 = pl.select(pl.when((precision + recall) == 0).then(0.0).otherwise(f1)).to_series()
    nothing = pl.when(pl.col("n_predicted") == 0).then(pl.lit("no_prediction"))
    undefined = nothing.when(pl.col("n_true") == 0).then(pl.lit("no_positive")).alias("undefined")
    return frame.with_columns(precision, recall.alias("recall"), f1.alias("f1"), undefined)
