"""Faults of the inputs of change_points, and warnings about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DataError, Note
from ...plan import rows
from ...plan.checks import (
    doubtful_groups,
    doubtful_scores,
    duplicate_check,
    file_check,
    missing_check,
    negative_check,
    outside_check,
)
from ...plan.nodes import CrossCheck
from ...queries.load import statement
from ...visible_text import rows_in_words
from .contract import ANNOTATOR, END, POSITION, SERIES_ID, START, is_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...plan.checks import Faults
    from ...plan.nodes import Check
    from ...sources.source import Source
    from .contract import ChangePointsParameters
    from .relations import Inputs, Relations

FARTHEST = 1e19  # beyond every 64-bit integer; the sum of some thousand such delays is still a decimal
INCIDENT_RULES = ("one_to_one", "any")
ENDS_BEFORE_START = "change_points/checks/ends_before_start"
OUTSIDE_SERIES = "change_points/checks/outside_series"
CLOCKS = 'Declare it with timezone = "Europe/Amsterdam" (or "UTC") on that input.'


def positions(inputs: Inputs, params: ChangePointsParameters) -> Iterator[tuple[Source, str]]:
    """The columns that are positions: of predictions, of true points and, if it is wanted, of the observed time."""
    yield inputs.predictions, POSITION
    for name in inputs.true_positions:
        yield inputs.annotations, name
    if params.per is not None and inputs.spans and inputs.series is not None:
        for name in (START, END):
            yield inputs.series, name


def check_columns(params: ChangePointsParameters, inputs: Inputs, by: Sequence[rows.Grouped]) -> None:
    """Faults that the footers show.

    Raises:
        DataError: a column is missing, or two that must be compared differ in type.
    """
    for key in (SERIES_ID, ANNOTATOR):
        rows.check_keys(inputs.given, key)
    _check_true_points(params, inputs)
    if params.annotators != "union" and not inputs.annotations.has(ANNOTATOR):
        message = f"annotators = {params.annotators!r} needs {ANNOTATOR} in annotations"
        raise DataError(message, remedy="Map it with columns = { annotator_id = … }.")
    if params.threshold_values is not None and not inputs.predictions.has("score"):
        message = "thresholds are given, but predictions has no column 'score'"
        raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")
    if params.first_cluster not in {None, SERIES_ID} and not (inputs.series and inputs.series.has(str(params.cluster))):
        message = f"cluster: {params.cluster!r} must be a column of the input series"
        raise DataError(message, remedy="Give series, with a row per series and that column.")
    _check_clocks(inputs, params)
    if inputs.runs is not None:
        for grouped in by:
            if grouped.source == "predictions":
                _check_same(inputs.predictions, inputs.runs, grouped)


def _check_same(predictions: Source, runs: Source, grouped: rows.Grouped) -> None:
    """A grouping column of predictions must be in runs, with its type."""
    if not runs.has(grouped.column):
        message = f"input runs: it has no column {grouped.column!r}, by which predictions are grouped"
        raise DataError(message, remedy="It lists what was run: one row per series and value of these columns.")
    types = {source.known_type(grouped.column, grouped.field) for source in (predictions, runs)}
    known_types = sorted(sql_type for sql_type in types if sql_type is not None)
    if len(known_types) > 1:
        message = f"column {grouped.column} is {' but '.join(known_types)} in predictions and runs"
        raise DataError(
            message, remedy='Give one the type of the other: columns = { … = { sql = "CAST(… AS VARCHAR)" } }.'
        )


def _check_true_points(params: ChangePointsParameters, inputs: Inputs) -> None:
    """Annotations say where points are, or where incidents start and end, for which not every rule has a meaning."""
    annotations, series = inputs.annotations, inputs.series
    if not annotations.has(POSITION) and not inputs.lasting:
        known = next((name for name in (START, END) if annotations.has(name)), None)
        field = annotations.contract.field(POSITION)
        if known is None and field is not None:
            annotations.types(POSITION, field)  # raises: no column of that name
        message = f"input annotations: it has {known!r}, but an incident that lasts needs both {START!r} and {END!r}"
        raise DataError(message, remedy=f'Map the other: columns = {{ {START if known == END else END} = "…" }}.')
    if annotations.has(POSITION) and any(annotations.is_mapped(name) for name in (START, END)):
        message = f"input annotations: {POSITION} is a point, and {START} and {END} are those of an incident that lasts"
        raise DataError(message, remedy=f"Keep one of the two: columns = {{ {POSITION} = false, … }} for incidents.")
    if inputs.lasting and params.annotators == "tcpd":
        message = 'annotators = "tcpd" is about points, and annotations have a start and an end'
        raise DataError(message, remedy='Use "union" or "separate", or map position to the start alone.')
    if inputs.lasting and params.rule not in INCIDENT_RULES:
        message = f"matching = {params.rule!r} pairs positions, and annotations have a start and an end"
        raise DataError(message, remedy=f"Use {' or '.join(map(repr, INCIDENT_RULES))}, or map position to the start.")
    if params.per is not None and not inputs.spans and not (series is not None and series.has("n_obs")):
        message = f"per = {params.per!r}: it is not known how long the series were observed"
        remedy = f"Give series with {START!r} and {END!r}, or with 'n_obs' where positions number the observations."
        raise DataError(message, remedy=remedy)


def check_lengths(params: ChangePointsParameters, inputs: Inputs, kind: str) -> None:
    """Lengths are durations where positions are times, and numbers elsewhere.

    Raises:
        DataError: one is not, or the number of observations says nothing about how long they took.
    """
    durations = {"margin": params.margin.is_duration}
    durations |= {
        name: is_duration(length)
        for name, length in (("cooldown", params.cooldown), ("per", params.per))
        if length is not None
    }
    for name, is_time in durations.items():
        if (kind == "times") != is_time:
            remedy = 'Write a duration, such as "2h".' if kind == "times" else "Write a number in their unit."
            message = f"{name}: positions are {kind}"
            raise DataError(message, remedy=remedy)
    if params.per is not None and not inputs.spans and kind != "integers":
        message = f"per = {params.per!r}: n_obs of series is a number of observations, and positions are {kind}"
        raise DataError(message, remedy=f"Give {START!r} and {END!r} of the observation of every series.")


def _check_clocks(inputs: Inputs, params: ChangePointsParameters) -> None:
    """Times on all sides must have a zone, or none."""
    zoned = {}
    for source, name in positions(inputs, params):
        field = source.contract.field(name)
        if field is not None and source.known_type(name, field) in {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}:
            zoned[f"{source.name}.{name}"] = bool(source.is_zoned(name))
    if len(set(zoned.values())) > 1:
        naive = next(name for name, has_zone in sorted(zoned.items()) if not has_zone)
        message = f"no time zone in {naive}, but in the other input"
        raise DataError(message, remedy=CLOCKS)


def checks(params: ChangePointsParameters, inputs: Inputs, relations: Relations) -> Iterator[Check]:
    """Faults that only a scan shows."""
    for source, name in positions(inputs, params):
        field = source.contract.field(name)
        if field is not None and source.known_type(name, field) == "DOUBLE":
            yield outside_check(source, name, -FARTHEST, FARTHEST)
    for name in (SERIES_ID, *inputs.true_positions, *((ANNOTATOR,) if params.annotators != "union" else ())):
        yield missing_check(inputs.annotations, name)
    if inputs.lasting:
        yield file_check(ENDS_BEFORE_START, inputs.annotations)
    if inputs.coders is not None:
        yield missing_check(inputs.coders, SERIES_ID)
        yield missing_check(inputs.coders, ANNOTATOR)
    if inputs.runs is not None:
        yield missing_check(inputs.runs, SERIES_ID)
    if inputs.series is not None:
        yield from _of_series(inputs.series, params, inputs, relations)
    if params.duplicates == "error":
        keys = (*relations.of_predictions, SERIES_ID, POSITION)
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(inputs.predictions, keys, remedy=remedy, of_systems=True)


def _of_series(series: Source, params: ChangePointsParameters, inputs: Inputs, relations: Relations) -> Iterator[Check]:
    """Faults of the listed series."""
    yield missing_check(series, SERIES_ID)
    yield duplicate_check(series, (SERIES_ID,), remedy="Keep one row per series.")
    if relations.numbered:
        yield negative_check(series, "n_obs")
        yield _outside_check(inputs.predictions, POSITION)
        for name in inputs.true_positions:
            yield _outside_check(inputs.annotations, name)
    if relations.cluster != SERIES_ID:
        yield missing_check(series, relations.cluster)
    if relations.order not in {None, relations.cluster}:
        yield missing_check(series, str(relations.order))
    if params.per is not None:
        yield from _observed_time(series, relations, spans=inputs.spans)


def _outside_check(source: Source, name: str) -> Check:
    """Check that no position lies before the first or after the last observation of its series."""

    def words(faults: Faults) -> dict[str, object]:
        count = int(str(faults[0]["n_rows"]))
        return {"outside": "1 position lies" if count == 1 else f"{count:,} positions lie", "field": name}

    return file_check(OUTSIDE_SERIES, source, columns={POSITION: name}, words=words)


def _observed_time(series: Source, relations: Relations, *, spans: bool) -> Iterator[Check]:
    """Series whose observation has no length, or one below 0."""
    for name in (START, END) if spans else ("n_obs",):
        yield missing_check(series, name)
    if spans:
        yield file_check(ENDS_BEFORE_START, series)
    elif not relations.numbered:
        yield negative_check(series, "n_obs")


def cross_checks(params: ChangePointsParameters, inputs: Inputs, relations: Relations) -> Iterator[CrossCheck]:
    """Annotations that repeat, annotations that are left out, and series that may not have been looked at."""
    if inputs.series is not None:  # else every series with an annotation is evaluated
        yield CrossCheck({"outside": statement("change_points/annotations_elsewhere")}, _outside)
    if params.duplicates != "keep":
        by_annotator = [ANNOTATOR] if inputs.annotations.has(ANNOTATOR) else []
        name = "repeated_incidents" if inputs.lasting else "repeated_annotations"
        repeated = statement(f"change_points/{name}", by_annotator)
        if relations.one_run_each and not by_annotator:  # then what is matched are the distinct annotations
            repeated = statement("change_points/repeated_annotations_of_runs")
        yield CrossCheck({"repeated": repeated}, _repeated)
    if params.per is not None and inputs.spans:
        yield CrossCheck({"unobserved": statement("change_points/outside_observed_time")}, _unobserved)
    if relations.counted:
        yield CrossCheck({"unmarked": statement("change_points/series_without_annotation")}, _unmarked)


def _outside(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["outside"].item()
    return (f"{count:,} rows of annotations are of series that are not listed; they are left out",) if count else ()


def _unobserved(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["unobserved"].item()
    words = (
        f"{count:,} predictions lie before the start or after the end of the observation of their series; they count"
    )
    return (f"{words} all the same, so that rates over the observed time are too high",) if count else ()


def _repeated(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["repeated"].item()
    mark = "marks" if count == 1 else "mark"
    words = f"{rows_in_words(count)} of annotations {mark} a point that is marked already, which counts once"
    return (Note(words),) if count else ()


def _unmarked(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["unmarked"].item()
    if not count:
        return ()
    words = (
        f"{count:,} series have no mark: they are taken as looked at, so that every prediction in them is wrong; "
        "give series or coders to say which series were annotated"
    )
    return (words,)


def warnings(inputs: Inputs, by: Sequence[rows.Grouped], kind: str) -> Iterator[str]:
    """What the user should know before the numbers are used."""
    yield from doubtful_groups(inputs.given, by)
    if inputs.predictions.has("score"):
        yield from doubtful_scores(inputs.predictions)
    for source, name in (
        (inputs.predictions, POSITION),
        *((inputs.annotations, name) for name in inputs.true_positions),
    ):
        if source.has_float32(name):
            yield Note(
                f"{source.name}.{name} is single precision (FLOAT): distances are those of the rounded positions"
            )
    if inputs.annotations.has(POSITION) and inputs.annotations.has(START) and inputs.annotations.has(END):
        yield "annotations have a position and also start and end: points are counted; incidents if position = false"
    if inputs.series is not None and inputs.series.has("n_obs") and kind != "integers" and not inputs.lasting:
        yield Note(f"covering is empty (NULL): it needs positions that number the observations, and they are {kind}")
