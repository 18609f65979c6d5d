"""Faults of the inputs of change_points, and warnings about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import DataError
from pipeline.plan import rows
from pipeline.plan.checks import doubtful_groups, duplicate_check, missing_check, negative_check, outside_check
from pipeline.plan.nodes import CrossCheck
from pipeline.queries.load import statement
from pipeline.stages.change_points.contract import ANNOTATOR, POSITION, SERIES_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from pipeline.plan.nodes import Check
    from pipeline.sources.source import Source
    from pipeline.stages.change_points.contract import ChangePointsParameters
    from pipeline.stages.change_points.relations import Inputs, Relations

FARTHEST = 1e19  # beyond every 64-bit integer; the sum of some thousand such delays is still a decimal
CLOCKS = 'Declare it with timezone = "Europe/Amsterdam" (or "UTC") on that input.'


def check_columns(params: ChangePointsParameters, inputs: Inputs, by: Sequence[rows.Grouped]) -> None:
    """Faults that the footers show.

    Raises:
        DataError: a column is missing, or two that must be compared differ in type.
    """
    for key in (SERIES_ID, ANNOTATOR):
        rows.check_keys(inputs.given, key)
    if params.annotators != "union" and not inputs.annotations.has(ANNOTATOR):
        message = f"annotators = {params.annotators!r} needs {ANNOTATOR} in annotations"
        raise DataError(message, remedy="Map it with columns = { annotator_id = … }.")
    if params.threshold_values is not None and not inputs.predictions.has("score"):
        message = "thresholds are given, but predictions has no column 'score'"
        raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")
    if params.first_cluster not in {None, SERIES_ID} and not (inputs.series and inputs.series.has(str(params.cluster))):
        message = f"cluster: {params.cluster!r} must be a column of the input series"
        raise DataError(message, remedy="Give series, with a row per series and that column.")
    _check_clocks(inputs)
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
        raise DataError(message, remedy="Write one of the inputs again with the type of the other.")


def _check_clocks(inputs: Inputs) -> None:
    """Times on both sides must have a zone, or neither."""
    zoned = {}
    for source in (inputs.predictions, inputs.annotations):
        field = source.contract.field(POSITION)
        if field is not None and source.known_type(POSITION, field) in {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}:
            zoned[source.name] = bool(source.is_zoned(POSITION))
    if len(set(zoned.values())) > 1:
        naive = next(name for name, has_zone in sorted(zoned.items()) if not has_zone)
        message = f"no time zone in {naive}.{POSITION}, but in the other input"
        raise DataError(message, remedy=CLOCKS)


def checks(params: ChangePointsParameters, inputs: Inputs, relations: Relations) -> Iterator[Check]:
    """Faults that only a scan shows."""
    for source in (inputs.annotations, inputs.predictions):
        field = source.contract.field(POSITION)
        if field is not None and source.known_type(POSITION, field) == "DOUBLE":
            yield outside_check(source, POSITION, -FARTHEST, FARTHEST)
    yield missing_check(inputs.annotations, SERIES_ID)
    yield missing_check(inputs.annotations, POSITION)
    if params.annotators != "union":
        yield missing_check(inputs.annotations, ANNOTATOR)
    if inputs.coders is not None:
        yield missing_check(inputs.coders, SERIES_ID)
        yield missing_check(inputs.coders, ANNOTATOR)
    if inputs.runs is not None:
        yield missing_check(inputs.runs, SERIES_ID)
    if inputs.series is not None:
        yield missing_check(inputs.series, SERIES_ID)
        yield duplicate_check(inputs.series, (SERIES_ID,), remedy="Keep one row per series.")
        if relations.covered:
            yield negative_check(inputs.series, "n_obs")
        if relations.cluster != SERIES_ID:
            yield missing_check(inputs.series, relations.cluster)
    if params.duplicates == "error":
        keys = (*relations.of_predictions, SERIES_ID, POSITION)
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(inputs.predictions, keys, remedy=remedy)


def cross_checks(params: ChangePointsParameters, inputs: Inputs, relations: Relations) -> Iterator[CrossCheck]:
    """Annotations that repeat, annotations that are left out, and series that may not have been looked at."""
    if inputs.series is not None:  # else every series with an annotation is evaluated
        yield CrossCheck({"outside": statement("change_points/annotations_elsewhere")}, _outside)
    if params.duplicates != "keep":
        by_annotator = [ANNOTATOR] if inputs.annotations.has(ANNOTATOR) else []
        repeated = statement("change_points/repeated_annotations", by_annotator)
        if relations.one_run_each and not by_annotator:  # then what is matched are the distinct annotations
            repeated = statement("change_points/repeated_annotations_of_runs")
        yield CrossCheck({"repeated": repeated}, _repeated)
    if relations.counted:
        yield CrossCheck({"unmarked": statement("change_points/series_without_annotation")}, _unmarked)


def _outside(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["outside"].item()
    return (f"{count:,} rows of annotations are of series that are not listed; they are left out",) if count else ()


def _repeated(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    count = frames["repeated"].item()
    return (f"{count:,} rows of annotations repeat a mark; each counts once",) if count else ()


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
    if inputs.predictions.has("score") and inputs.predictions.has_float32("score"):
        yield "scores are single precision (FLOAT); they are compared with the thresholds as DOUBLE"
    for source in (inputs.predictions, inputs.annotations):
        if source.has_float32(POSITION):
            yield f"{source.name}.{POSITION} is single precision (FLOAT); distances are those of the rounded positions"
    if inputs.series is not None and inputs.series.has("n_obs") and kind != "integers":
        yield f"covering needs positions that number the observations; they are {kind}, so it is NULL"
