"""The stage change_points: what people look at of its results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import sqlglot.expressions as exp

from ...base.columns import scales
from ...base.dialect import column, double
from ...base.sql_files import statement
from ...base.visible_text import listed
from ...metrics.curves.operating_points import CRITERION
from ...plan.counts import Query, Transform
from ...plan.nodes import Relation
from .. import sections
from ..figures import (
    BIN,
    NUMBER,
    Axis,
    Figure,
    Rule,
    Series,
    Wanted,
    across_groups,
    by_threshold,
    caption,
    histogram,
    histogram_of_shares,
    intervals,
    key_numbers_of,
    keys_of,
    lines_by_threshold,
    of_best,
    on_other_data,
    path_of_thresholds,
    precision_recall,
    ratios_of_groups,
    rising,
    shares,
    shown,
    with_limits,
)
from ..sections import EXPLAINED_ROWS, Convention, Evidence, Measure, Profile, Section
from ..stage import Stage, UnitTable, untold, with_influence
from ..stated import measures_of, sample_sizes_of
from .contract import (
    ALARM_POINTS,
    ALARMS,
    ANNOTATIONS,
    BETWEEN,
    CODERS,
    COUNTS,
    INCIDENTS,
    LEADS,
    PREDICTIONS,
    RATE,
    RUNS,
    SERIES,
    SERIES_ID,
    STATED,
    TABLES,
    ChangePointsParameters,
    further_columns,
)
from .planning import OUTCOMES, RUNS_OF_SERIES, plan
from .points import FALSE, MERGED, REPEAT, RUN, TRUE
from .results import best_on_other_data, best_rows, derive, summarize, unit_of, warnings, with_rates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...plan.nodes import Node
    from ..figures import KeyNumber
    from ..sections import Asked, Measured


MOST_BINS = 40
NUMBERS = (
    Wanted("precision", "Precision", "predictions near a true point", "precision"),
    Wanted("recall", "Recall", "true points that are found", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by threshold where there are scores, delays of the matches, F1 over series."""
    curve, points = rising(tables["change_points_curve"]), tables["change_points_operating_points"]
    what = "The ratios if every predicted change point that scores at least the threshold counts."
    x_title = "Threshold: score from which a prediction counts"
    yield by_threshold(curve, points, confidence, what=what, x_title=x_title)
    yield precision_recall(curve, points)
    best = of_best(best_rows(tables))
    yield ratios_of_groups(best, "n_true", confidence, "at its best threshold, or of all predictions without scores")
    yield _delays(tables.get("change_points_delays"))
    yield from alarm_figures(tables, confidence)
    series = tables.get("change_points_series")
    if series is not None:
        yield histogram_of_shares(
            series,
            "f1",
            name="f1_of_series",
            title="F1 of the series",
            what="F1 of a series, all its predictions counted",
            unit="series",
        )


def _delays(delays: pl.DataFrame | None) -> Figure | None:
    if delays is None or delays.is_empty():
        return None
    is_timed = delays.schema["position"].is_temporal()
    unit = "hours" if is_timed else "units of the positions"
    width = width_of_bins(delays["delay"].abs().max(), whole=bool((delays["delay"].floor() == delays["delay"]).all()))  # type: ignore[arg-type]  # a number
    centred = delays.with_columns(pl.col("delay") / width + 0.5)  # a bin has the delay 0 in its middle
    cells = centred["delay"].floor().cast(pl.Int64)
    frame = histogram(centred, "delay", 1.0, cells.min(), cells.max())  # type: ignore[arg-type]  # whole numbers
    return Figure(
        name="delays",
        title="Delays of the matched predictions",
        caption=(
            f"Number of matched predictions by how many {unit} they lie behind the true point; below 0 they lie before "
            f"it. Every bar is {width:g} wide."
        ),
        frame=frame.with_columns((pl.col(BIN) - 0.5) * width),
        x=Axis(BIN, f"Delay: prediction − true point, in {unit}", includes=(0.0,)),
        y=Axis("", "Number of matched predictions", "integer", includes=(0.0,)),
        series=(Series(NUMBER, "Matched predictions", "estimate", "bar"),),
        rules=(Rule("No delay", 0.0),),
    )


def width_of_bins(largest: float, *, whole: bool) -> float:
    """Return the width of bins for delays of both signs: 1, 2 or 5 times a power of ten, for at most `MOST_BINS` bins.

    The largest delay has no sign; with `whole` bins narrower than 1 are of no use.
    """
    if largest == 0:
        return 1.0
    least = 2 * largest / (MOST_BINS - 1)
    power = math.floor(math.log10(least))
    steps = (step * 10.0**exponent for exponent in (power, power + 1) for step in (1, 2, 5))
    width = next(step for step in steps if step >= least)
    return max(width, 1.0) if whole else width


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the threshold with the best F1, of alarms the rate of false ones."""
    best = with_rates(best_on_other_data(tables), tables)
    unit = unit_of(tables)
    rates = (
        () if unit is None else (Wanted(RATE.name, f"False alarms per {unit}", "of observed time", format="number"),)
    )
    return key_numbers_of(best, (*NUMBERS, *rates))


# What there is to look at of change points as alarms: false alarms over time, and leads.


def alarm_figures(tables: Mapping[str, pl.DataFrame], confidence: float) -> Iterator[Figure | None]:
    """The rate of false alarms by threshold, what is detected at such a rate, and how early alarms come."""
    alarms = tables.get(ALARMS.name)
    if alarms is None or alarms.is_empty():
        return
    unit, points = unit_of(tables), tables[ALARM_POINTS.name]
    if unit is not None:
        curve = rising(alarms)
        yield lines_by_threshold(
            curve,
            points,
            confidence,
            (with_limits(curve, Series(RATE.name, "False alarms", "neutral")),),
            name="false_alarms",
            title="False alarms over time, by threshold",
            what=f"False alarms per {unit} of observed time if every alarm that scores at least the threshold counts.",
            x_title="Threshold: score from which an alarm counts",
            y=Axis("", f"False alarms per {unit}", includes=(0.0,)),
        )
        yield path_of_thresholds(
            curve,
            points,
            name="detected_at_rate",
            title="Detection rate against false alarms",
            words="Every point of the line is a threshold: lower ones detect more, mostly with more false alarms.",
            axes=(
                Axis(RATE.name, f"False alarms per {unit} of observed time", includes=(0.0,)),
                shares("Detected", "recall"),
            ),
            series=(Series("recall", "Detected", "recall", "path"),),
        )
    yield _leads(points, confidence)


def _leads(points: pl.DataFrame, confidence: float) -> Figure | None:
    """The median lead of all groups at the first criterion; None of a single group."""
    first = points.filter(pl.col(CRITERION) == pl.col(CRITERION).first().over(keys_of(points)))
    if first.height < 2 or first["median_lead"].is_null().all():  # noqa: PLR2004 - one group has none beside it
        return None
    series = (with_limits(first, Series("median_lead", "Median lead", "estimate", "point")),)
    return across_groups(
        first,
        series,
        "n_true",
        name="leads",
        title="How early alarms come",
        words=caption(
            f"Median lead of every group at the threshold chosen by {first[CRITERION][0]}: by how much the first alarm "
            "comes before what it tells of. Below 0 it comes later.",
            intervals(series, confidence),
        ),
        y=Axis("", "Median lead: start − first alarm (hours for times)", includes=(0.0,)),
        rules=(Rule("No lead", 0.0, "y"),),
    )


# What a methods section says of change points as alarms.


_REPEATS = {
    "ignore": "count neither as true nor as false, as in the Numenta Anomaly Benchmark (Lavin and Ahmad 2015)",
    "false_alarm": "are false alarms",
}


def _has_alarms(measured: Measured) -> bool:
    alarms = measured.tables.get(ALARMS.name)
    return alarms is not None and not alarms.is_empty()


def _rules(measured: Measured) -> Iterator[str]:
    """Say which alarms are one, and what becomes of those that repeat."""
    if not _has_alarms(measured):
        return
    cooldown = measured.parameters["cooldown"]
    if cooldown is not None:
        yield (
            f"At every threshold, alarms that came less than {_length(cooldown)} after an alarm of the same series "
            "were taken as one with it."
        )
    yield f"Further alarms near a true point that is detected {_REPEATS[measured.facts['repeats']]}."


def _length(value: object) -> str:
    return value if isinstance(value, str) else f"{value} positions"


def limits(measured: Measured) -> Iterator[str]:
    """Say how the rate of false alarms and its limits were computed."""
    per = measured.parameters.get("per")
    if not _has_alarms(measured) or per is None:
        return
    longest = max(measured.tables[ALARMS.name]["observed"].drop_nulls().to_list(), default=0.0)
    yield f"False alarms were counted per {_length(per)} of observed time, of which a group has up to {longest:,.6g}."
    if measured.parameters["uncertainty"] == "jackknife":
        yield (
            "Limits of the rate are those of a Poisson count (Garwood 1936), of counts that are divided by their "
            "dispersion between series."
        )


def results(measured: Measured) -> Iterator[str]:
    """Give the rate of false alarms and the leads at the chosen thresholds."""
    if not _has_alarms(measured):
        return
    points = sections.of_first_criterion(measured.tables[ALARM_POINTS.name])
    shown, _ = sections.headline_rows(points)
    per = measured.parameters.get("per")
    unit = "hours" if measured.facts["positions"] == "times" else "positions"
    for row in shown:
        phrases = []
        if row["false_alarm_rate"] is not None and per is not None:
            phrases.append(
                f"there were {_with_limits(row, 'false_alarm_rate', measured)} false alarms per {_length(per)}"
            )
        if row["median_lead"] is not None:
            ahead = sections.estimate(row, "share_ahead", measured.confidence)
            lead = _with_limits(row, "median_lead", measured)
            phrases.append(
                f"{ahead} of the alerted true points were told ahead of time, the median lead being {lead} {unit}"
            )
        if phrases:
            group = sections.named_group(row)
            head = ", ".join(filter(None, (sections.filled(sections.CHOSEN, row), group and f"for {group}")))
            body = listed(phrases)
            yield f"{head}, {body}." if head else f"{body[0].upper()}{body[1:]}."


def _with_limits(row: Mapping[str, Any], name: str, measured: Measured) -> str:
    """A number with its limits."""
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    if lower is None or upper is None:
        return f"{row[name]:.3g}"
    return f"{row[name]:.3g} ({measured.confidence} CI {lower:.3g} to {upper:.3g})"


# What a methods section says of change_points.


NOUNS = {"predictions": "predicted points", "annotations": "annotated points"}
RULES = {
    "one_to_one": "a largest one-to-one matching of predictions and marks (Edmonds and Fulkerson 1965)",
    "any": "marks with any prediction within the margin (Truong, Oudre and Vayatis 2020)",
    "roerich": "marks in order, each taking the first free prediction within the margin, as in the program roerich",
    "ruptures": "marks in order, each consuming all predictions within the margin, as in the program ruptures",
    "nearest": "marks in order, each taking the nearest free prediction (van den Burg and Williams 2020)",
}
ANNOTATORS = {
    "union": "The distinct marks of all annotators of a series are true.",
    "separate": "Every annotator is taken by itself.",
    "tcpd": (
        "Precision is against the marks of all annotators together, and recall is averaged over annotators (van den "
        "Burg and Williams 2020)."
    ),
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how detected change points were compared with annotated ones, and what came out."""
    areas, parameters = measured.tables["change_points_areas"], measured.parameters
    yield (
        f"{measured.used('predictions'):,} predicted change points were compared with {measured.used('annotations'):,} "
        f"annotated ones on {measured.most(areas['n_series'])} series."
    )
    yield sections.left_out(measured, NOUNS)
    lasting = measured.facts.get("true_points") == "incidents"
    yield f"True positives are {RULES[measured.facts['matching']]}; {_margin(parameters, lasting=lasting)}."
    yield ANNOTATORS[parameters["annotators"]]
    yield from _rules(measured)
    if measured.has("predictions.score"):
        yield sections.scored_predictions(measured)
        yield sections.invalid_scores(measured, "Predictions")
        yield sections.criteria(measured)
    units = sections.units_in_words(measured, {"series_id": "series"})
    yield sections.intervals(
        measured,
        units,
        f"are those of proportions whose counts are divided by the design effect, by the jackknife over {units}",
    )
    yield from limits(measured)
    # give the chosen point, or without scores the counts of all predictions
    points = measured.tables["change_points_operating_points"]
    rows = on_other_data(sections.of_first_criterion(points))
    if rows.is_empty():
        rows = measured.tables["change_points_curve"].filter(pl.col("threshold").is_null())
    yield from sections.results(rows, sections.RATIO_NAMES, measured.confidence, sections.CHOSEN)
    yield from results(measured)


def _margin(parameters: Mapping[str, dict[str, object]], *, lasting: bool) -> str:
    before, after = (parameters["margin"][side] for side in ("before", "after"))
    boundary = "at most" if str(parameters["margin_boundary"]) == "<=" else "less than"
    unit = "" if isinstance(before, str) else " (in the unit of the positions)"
    if lasting:
        sides = f"{boundary} {before} before its start or {after} after its end{unit}"
        return f"a prediction lies within the margin of an incident inside it, or {sides}"
    sides = f"{before} from a mark" if before == after else f"{before} before or {after} after a mark"
    return f"a prediction lies within the margin if it is {boundary} {sides}{unit}"


SAMPLE_SIZES = sample_sizes_of(
    STATED,
    {"series_id": "series"},
    "change_points_areas",
    units={"series_id": "n_series"},
    scales_of_others=scales((RATE, BETWEEN)),
)


# What ruptures, roerich and TCPDBench do otherwise.


_UNITS = ("change_points_series", "series_id", ("n_true", "n_predicted", "tp", "precision", "recall"))
_UNION = Convention(
    "several annotators",
    "knows one list of true points",
    {"annotators": "union"},
    keeps={"annotators": "separate"},  # each group has the list of one annotator
)
_SERIES = "it gives one number for each series: those are in the rows, here all series together"


def _one_margin(params: ChangePointsParameters) -> str:
    """Why the tool cannot have such a margin; empty if it can."""
    if params.margin.before != params.margin.after:
        return f"it has one margin for both sides, and here they are {params.margin.before} and {params.margin.after}"
    return ""


def _several_annotators(params: ChangePointsParameters) -> str:
    """Why the benchmark cannot have such a number; empty if it can."""
    words = "it averages over annotators, and here each of them is a group of its own"
    return words if params.annotators == "separate" else _one_margin(params)


RUPTURES = Profile(
    name="ruptures",
    tool="ruptures 1.1.10, metrics.precision_recall",
    measures={"precision": "precision", "recall": "recall"},
    conventions=(
        _UNION,
        Convention("a distance equal to the margin", "does not match", {"margin_boundary": "<"}),
        Convention(
            "one true point, several predictions",
            "true points by position consume every prediction near them, so that it loses matches",
            {"matching": "ruptures"},
        ),
        Convention(
            "the end of a series",
            "lists must end with the length of the series, which is then left out",
            ours="positions are those of changes alone; the end is none",
        ),
        Convention("no true positive", "precision and recall are 0", ours="NULL where 0 / 0", undefined=0.0),
    ),
    exactly=f"on positions in ascending order; {_SERIES}",
    units=_UNITS,
    refuses=_one_margin,
)
ROERICH = Profile(
    name="roerich",
    tool="roerich 0.6.0, metrics.precision_recall_scores",
    measures={"precision": "precision", "recall": "recall"},
    conventions=(
        _UNION,
        Convention("a distance equal to the margin", "matches", {"margin_boundary": "<="}),
        Convention(
            "one true point, several predictions",
            "true points in the order of its input take the first free prediction within the margin",
            {"matching": "roerich"},
        ),
        Convention("nothing predicted", "precision is 0", ours="NULL", measures=("precision",), undefined=0.0),
    ),
    exactly=f"on positions in ascending order; {_SERIES}",
    units=_UNITS,
    refuses=_one_margin,
)
TCPDBENCH = Profile(
    name="tcpdbench",
    tool="TCPDBench at 1709f40, metrics.f_measure and metrics.covering",
    measures={"precision": "precision", "recall": "recall", "f1": "f_measure", "covering": "covering"},
    conventions=(
        Convention(
            "several annotators",
            "precision against all marks, recall averaged over annotators; index 0 is a change point of every side",
            {"annotators": "tcpd"},
        ),
        Convention("a distance equal to the margin", "matches", {"margin_boundary": "<="}),
        Convention(
            "one true point, several predictions",
            "true points take the nearest free prediction",
            {"matching": "nearest"},
        ),
    ),
    exactly=f"where no true point is as near to a prediction as another; {_SERIES}",
    units=("change_points_series", "series_id", ("precision", "recall", "f1", "covering")),
    refuses=_several_annotators,
)
PROFILES = (RUPTURES, ROERICH, TCPDBENCH)


# Where the numbers of change_points come from: missed and false points with their neighbours, and series.


_WHY = {REPEAT: "it repeats a detection", MERGED: "it comes within the cooldown"}
_POINTS, _TRUE_POINTS = "change_points/explain/points", "change_points/explain/true_points"
_MICROSECONDS_PER_HOUR = 3.6e9
_INPUTS = {"series": {SERIES_ID: SERIES_ID}}


def _nodes(asked: Asked) -> tuple[Node, ...]:
    """The points of every run matched anew, of the predictions that count at the threshold."""
    matching = next(node for node in asked.plan.nodes if isinstance(node, Transform) and node.into == OUTCOMES)
    reads = dict(matching.reads)
    if asked.threshold is not None:
        retrieved = column("score") >= double(asked.lowest_score)
        reads["predictions"] = exp.select("*").from_(reads["predictions"].subquery("predictions")).where(retrieved)
    return replace(matching, reads=reads), Relation("annotations_of_runs", matching.reads["annotations"])


def _is_alarmed(asked: Asked) -> bool:
    """Whether points are counted as alarms."""
    return any(isinstance(node, Query) and node.into == LEADS for node in asked.plan.nodes)


def _rows(asked: Asked) -> dict[str, str | exp.Query]:
    shown: dict[str, str | exp.Expr] = {"is_shown": exp.true()}
    if _is_alarmed(asked):
        shown["is_shown"] = column("is_prediction", "m")
    else:
        is_true = column("tp", "m") > exp.Literal.number(0)
        shown["status"] = exp.Case().when(is_true, exp.Literal.number(TRUE)).else_(exp.Literal.number(FALSE))
        if asked.params.annotators == "tcpd":
            shown["is_shown"] = column("is_row", "m")
    rows = statement("change_points/explain/rows", asked.by, columns=shown)
    detected = statement("change_points/explain/detected_of_runs", asked.by)
    return {EXPLAINED_ROWS: rows, "explained_runs": RUNS_OF_SERIES, "explained_detections": detected}


def _like(true_points: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """True points with positions of the type that predictions have: numbers, or times of microseconds."""
    return true_points.with_columns(pl.col("position").cast(points.schema["position"]))


def _beside(points: pl.DataFrame, neighbours: pl.DataFrame, name: str) -> pl.DataFrame:
    """Points with the nearest neighbour of their run, called `name`, and their distance from it, in hours for times."""
    right = neighbours.select(RUN, pl.col("position").alias("_at"), pl.col("position").alias(name)).sort("_at")
    joined = points.sort("position").join_asof(
        right, left_on="position", right_on="_at", by=RUN, strategy="nearest", check_sortedness=False
    )
    difference = pl.col("position") - pl.col(name)
    if points.schema["position"].is_temporal():
        difference = difference.dt.total_microseconds() / _MICROSECONDS_PER_HOUR
    return joined.with_columns(difference.alias("distance")).drop(RUN, "_at", strict=False)


def _false_points(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Predictions that are no true positive, beside the nearest true point."""
    wrong = points.filter(pl.col("status") == FALSE).drop("status", "true_position")
    beside = _beside(wrong, _like(frames["true_points"], points), "nearest_true_point")
    order = [pl.col(SERIES_ID), *map(pl.col, asked.by), pl.col("position")]
    return beside.sort(pl.col("score"), *order, descending=[True] + [False] * len(order), nulls_last=True)


def _missed(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """True points that no prediction is matched with, beside the nearest prediction that counts."""
    missed = _like(frames["true_points"], points).join(frames["detected"], on=[RUN, "position"], how="anti")
    beside = _beside(missed, points, "nearest_prediction")
    return beside.sort(pl.col("distance").abs(), SERIES_ID, *asked.by, "position", nulls_last=True)


def _series(points: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Series with their counts, and the ratio that all others have together."""
    is_true, counts_as_either = pl.col("status") == TRUE, pl.col("status").is_in([TRUE, FALSE])
    numbers = {"n_predicted": counts_as_either, "tp": is_true}
    predicted = points.group_by(SERIES_ID).agg(
        *(rows.sum().cast(pl.Int64).alias(name) for name, rows in numbers.items())
    )
    true = frames["true_points"].group_by(SERIES_ID).agg(pl.len().cast(pl.Int64).alias("n_true"))
    counts = true.join(predicted, on=SERIES_ID, how="full", coalesce=True)
    counts = counts.with_columns(pl.col("n_true", "n_predicted", "tp").fill_null(0).cast(pl.Int64)).sort(SERIES_ID)
    fp, fn = (pl.col(name) - pl.col("tp") for name in ("n_predicted", "n_true"))
    return with_influence(counts.select(SERIES_ID, "tp", fp.alias("fp"), fn.alias("fn")), asked.measure)


def _not_counted(points: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Predictions that count neither as true nor as false, and why."""
    silent = points.filter(pl.col("status").is_in(list(_WHY)))
    why = pl.col("status").replace_strict(_WHY, default=None, return_dtype=pl.String).alias("why")
    order = [pl.col(SERIES_ID), *map(pl.col, asked.by), pl.col("position")]
    sorted_rows = silent.sort(pl.col("score"), *order, descending=[True] + [False] * len(order), nulls_last=True)
    return sorted_rows.with_columns(why).drop("status", "true_position", RUN)


def _without_matches(asked: Asked) -> str:
    rule = asked.params.rule
    if rule == "any" and asked.plan.facts["true_points"] == INCIDENTS:
        return ""
    words = f'with matching = "{rule}" several points can share a match, so that no point is missed by itself'
    return "" if rule == "one_to_one" and asked.params.annotators != "tcpd" else words


EVIDENCE = Evidence(
    measures=(
        *measures_of(STATED, "change_points_curve"),
        *measures_of((RATE, BETWEEN), ALARMS.name),
        Measure("mean_lead", ALARMS.name),
        *(
            Measure(name, "change_points_areas")
            for name in ("average_precision", "pr_auc", "pr_auc_roerich", "covering")
        ),
    ),
    sections=(
        Section(
            "false_points",
            "False points",
            "Predictions at {threshold} that are matched with no true point, beside the nearest true point of the "
            "series; the highest scores first. The distance is in the unit of the positions, in hours for times.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_false_points,
            ranks=True,
            inputs=_INPUTS,
        ),
        Section(
            "missed",
            "Missed points",
            "True points that no prediction at {threshold} is matched with, beside the nearest prediction, which may "
            "be matched with another point; the nearest first.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS, "detected": "change_points/explain/detected"},
            finish=_missed,
            ranks=True,
            inputs=_INPUTS,
            absent=_without_matches,
        ),
        Section(
            "series",
            "Series that carry the scores",
            "Each series with the {measure} that all others have together without it; the largest influence first.",
            _POINTS,
            reads={"true_points": _TRUE_POINTS},
            finish=_series,
            ranks=True,
            inputs=_INPUTS,
            absent=lambda asked: _without_matches(asked) or untold(asked, "series"),
        ),
        Section(
            "not_counted",
            "Alarms that count neither way",
            "Predictions at {threshold} that come within the cooldown after an earlier alarm of their run, or that lie "
            "near a true point and do not detect it; the highest scores first.",
            _POINTS,
            finish=_not_counted,
            ranks=True,
            inputs=_INPUTS,
            absent=lambda asked: (
                "" if _is_alarmed(asked) else "every prediction counts: neither cooldown nor repeats is set"
            ),
        ),
    ),
    rows=_rows,
    points="change_points_operating_points",
    nodes=_nodes,
    parameters={"delays": True, "series_counts": True},
    profiles=PROFILES,
    decides=(
        *("margin", "margin_boundary", "matching", "annotators", "boundary", "duplicates"),
        *("cooldown", "repeats", "per"),
    ),
)


STAGE = Stage(
    kind="change_points",
    parameters=ChangePointsParameters,
    inputs=(PREDICTIONS, ANNOTATIONS, SERIES, RUNS, CODERS),
    tables=TABLES,
    count_columns=COUNTS,
    plan=plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("change_points_series", "series_id", has_clusters=True),
)
