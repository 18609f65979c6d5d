"""Figures and words of threshold_sweep: what to look at, how it was measured, where its numbers come from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...base.columns import FURTHER, OF_LABELS, THRESHOLD, divide, scales
from ...base.dialect import column, double
from ...base.sql_files import statement
from ...base.visible_text import listed
from .. import sections
from ..figures import (
    QUALITY_IN_SAMPLE,
    Axis,
    Figure,
    Rule,
    Series,
    Wanted,
    across_groups,
    by_threshold,
    caption,
    drawn,
    intervals,
    key_numbers_of,
    keys_of,
    on_other_data,
    path_of_thresholds,
    precision_recall,
    rising,
    shares,
    shown,
    visible,
    with_limits,
)
from ..sections import EXPLAINED_ROWS, Convention, Evidence, Measure, Profile, Section
from ..stage import Counted, SampleSizes, nouns_of, untold, with_influence
from .areas import AREAS, PARTIAL, with_band
from .calibration import CALIBRATION_TABLE, RELIABILITY_TABLE, calibration_figures, calibration_sentences
from .contract import COST_PER_ROW, DRAWN
from .decisions import is_about_cost
from .units import INPUTS, identity, location_of_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...base.columns import Index, Ratio
    from ..figures import KeyNumber
    from ..sections import Asked, Measured, Recounted


# Figures for decisions: net benefit over threshold probabilities, and precision and recall at other prevalences.


MOST_PREVALENCES = 4  # that have a figure
OUT_OF_SIGHT = 1.0  # net benefit of everybody is drawn down to minus so many times the highest net benefit
PREVALENCE = "prevalence"


def decision_figures(tables: Mapping[str, pl.DataFrame], confidence: float) -> Iterator[Figure | None]:
    """The decision curve, and the curves at each of the first prevalences; none where their tables were not made.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    benefit, at, points = (
        tables.get(f"threshold_sweep_{name}") for name in ("net_benefit", "at_prevalence", "points_at_prevalence")
    )
    if benefit is not None and not benefit.is_empty():
        yield _decision_curve(benefit, confidence)
    if at is None or at.is_empty():
        return
    shares = at[PREVALENCE].unique().sort().to_list()
    for number, share in enumerate(shares[:MOST_PREVALENCES], start=1):
        is_here = pl.col(PREVALENCE) == share
        percent = f"{100 * share:.4g}%"
        yield by_threshold(
            rising(at.filter(is_here)),
            None if points is None else points.filter(is_here),
            confidence,
            name=f"at_prevalence_{number}",
            title=f"Precision, recall and F1 where {percent} of rows are true",
            what=f"The ratios in data of which {percent} are true, if the scores of each class are as they are here.",
            x_title="Threshold: score from which a row is predicted to be true",
        )


def _decision_curve(table: pl.DataFrame, confidence: float) -> Figure:
    rows = rising(table)
    lowest = -OUT_OF_SIGHT * pl.max_horizontal(pl.col("net_benefit").max(), 0.01)
    in_sight = pl.when(pl.col("net_benefit_all") >= lowest).then("net_benefit_all").alias("net_benefit_all")
    limits = [pl.max_horizontal(f"net_benefit_{side}", lowest).alias(f"net_benefit_{side}") for side in _SIDES]
    has_limits = pl.col("net_benefit_lower").is_not_null()
    rows = rows.with_columns(
        in_sight,
        pl.max_horizontal("net_benefit", lowest),
        *(pl.when(has_limits).then(limit) for limit in limits),
    )
    everybody = visible(rows, Series("net_benefit_all", "Every row retrieved", "chance"))
    series = (everybody, with_limits(rows, Series("net_benefit", "By score", "estimate")))
    words = (
        "Net benefit of retrieving every row whose score is at least the threshold probability: true positives less "
        "false positives, each worth the odds of that probability, per row. A model is of use where it lies above both "
        "the line of every row and 0, which is to retrieve none."
    )
    return Figure(
        name="decision_curve",
        title="Net benefit by threshold probability",
        caption=caption(words, intervals(series, confidence), "What lies far below 0 is left out."),
        frame=drawn(rows, THRESHOLD, series),
        x=Axis(THRESHOLD, "Threshold probability", "percent", includes=(0.0, 1.0)),
        y=Axis("", "Net benefit", "number", includes=(0.0,)),
        series=series,
        rules=(Rule("No row retrieved", 0.0, axis="y"),),
    )


_SIDES = ("lower", "upper")


# What a methods section says of decisions: net benefit, groups put together, and other prevalences.


def decisions(measured: Measured) -> Iterator[str]:
    """Say how costs, net benefit and ratios at other prevalences were computed, where they were."""
    tables = measured.tables
    if any(point.get("cost") is not None for point in measured.parameters["operating_points"]):
        yield "Cost per row is the mean cost of the outcomes (Elkan 2001)."
    benefit = tables.get("threshold_sweep_net_benefit")
    if benefit is not None and not benefit.is_empty():
        at = benefit["threshold"].unique().sort().to_list()
        yield (
            f"Net benefit (Vickers and Elkin 2006) was computed at {len(at):,} threshold probabilities from {at[0]:g} "
            f"to {at[-1]:g}, and compared with that of retrieving every row and none."
        )
    pooled = tables.get("threshold_sweep_pooled_points")
    if pooled is not None and pooled.filter(pl.col("thresholds") == "own").height:
        yield "Groups were also cut each at its own threshold and their counts added up."
    shares = measured.parameters.get("prevalence") or []
    wanted = [f"{100 * share:.4g}%" for share in (shares if isinstance(shares, list) else [shares])]
    if wanted:
        yield (
            f"Precision, negative predictive value and F1 at a prevalence of {listed(wanted)} follow from "
            "recall and the false positive rate by Bayes' theorem, on the assumption that each class scores there as "
            "here (prior shift), with limits by MOVER-R (Donner and Zou 2012)."
        )


NUMBERS = (
    Wanted("precision", "Precision", "predicted rows that are true", "precision"),
    Wanted("recall", "Recall", "true rows that are found", "recall"),
    Wanted("average_precision", "Average precision", "mean precision over all recalls", quality="quality_of_areas"),
    Wanted("roc_auc", "ROC AUC", "true row outscores false row", quality="quality_of_areas"),
)
COST = Wanted(COST_PER_ROW, "Cost per row", "mean cost of the outcomes", format="number", quality=QUALITY_IN_SAMPLE)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by threshold, precision against recall, ROC, calibration, figures for decisions, and areas by group.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    curve, points, areas = (tables[f"threshold_sweep_{name}"] for name in ("curve", "operating_points", "areas"))
    curve = rising(curve).with_columns(_prevalence())
    yield by_threshold(
        curve,
        points,
        confidence,
        what=(
            "The ratios if every row that scores at least the threshold is predicted to be true; specificity is 1 − "
            "false positive rate."
        ),
        x_title="Threshold: score from which a row is predicted to be true",
        below=(Series("fpr", "False positive rate", "neutral"),),
    )
    chance = Series("prevalence", "Share of true rows: precision by chance", "chance", "path")
    yield with_band(precision_recall(curve, points, (chance,)), tables, confidence)
    yield with_band(_roc(curve, points), tables, confidence)
    yield from calibration_figures(tables.get("threshold_sweep_reliability"), confidence)
    yield from decision_figures(tables, confidence)
    if areas.height > 1:
        yield _areas(areas, confidence)


def _prevalence() -> pl.Expr:
    """The share of true rows, of the weights if there are any: precision if scores told nothing."""
    counts = {name: pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64)) for name in ("tp", "fp", "fn", "tn")}
    positive, negative = counts["tp"] + counts["fn"], counts["fp"] + counts["tn"]
    return divide(positive, positive + negative).alias("prevalence")


def _roc(curve: pl.DataFrame, points: pl.DataFrame) -> Figure | None:
    return path_of_thresholds(
        curve,
        points,
        name="roc",
        title="ROC: recall against false positive rate",
        words="Every point of the line is a threshold. On the diagonal are scores that tell nothing.",
        axes=(shares("False positive rate", "fpr"), shares("Recall")),
        series=(Series("recall", "Recall", "recall", "path"),),
        rules=(Rule("By chance", axis="diagonal"),),
    )


def _areas(areas: pl.DataFrame, confidence: float) -> Figure:
    series = (
        with_limits(areas, Series("roc_auc", "ROC AUC", "recall", "point")),
        with_limits(areas, Series("average_precision", "Average precision", "precision", "point")),
    )
    words = "Areas under the curve of precision over recall and under the ROC curve."
    return across_groups(
        areas,
        series,
        "n",
        name="areas",
        title="Areas by group",
        words=caption(words, intervals(series, confidence)),
        y=shares("Average precision, ROC AUC"),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision and recall at the first operating point, its cost per row if it has one, and both areas, by group."""
    areas, points = (tables[f"threshold_sweep_{name}"] for name in ("areas", "operating_points"))
    if areas.is_empty() or points.is_empty():
        return ()
    keys = keys_of(areas)
    at_first = on_other_data(points.filter(pl.col("criterion") == points["criterion"][0]))
    at_first = at_first.rename({"undefined": "_undefined"})
    beside = areas.select(*keys, "n", pl.col("^(average_precision|roc_auc)(_lower|_upper)?$"), _QUALITY)
    table = beside.join(at_first, on=keys, how="left", nulls_equal=True, maintain_order="left")
    wanted = (*NUMBERS[:2], COST, *NUMBERS[2:]) if is_about_cost(at_first) else NUMBERS
    return key_numbers_of(table.sort("n", descending=True, maintain_order=True), wanted)


_QUALITY = pl.col("interval_quality").alias("quality_of_areas")


# What a methods section says of threshold_sweep.


PROPORTIONS = (
    "of precision, recall and F1 are beta quantiles (Clopper and Pearson 1934; Brown, Cai and DasGupta 2001){design}; "
    "those of areas are symmetric on the logit scale (Boyd, Eng and Page 2013), with standard errors from influence "
    "functions (for the ROC area those of DeLong, DeLong and Clarke-Pearson 1988){clusters} and degrees of freedom "
    "after Satterthwaite (1946)"
)
OF_SAMPLE = (
    "of the curve and the areas are quantiles of draws (Rubin 1981; Ghosh and Meeden 1997) that know the strata of the "
    "labelled sample and how many predictions each has at or above a threshold (difference estimator, Cochran 1977), "
    "with rows that may have been missed (Fay and Feuer 1997; Kerman 2011)"
)
FIXED = " Class sizes are taken as fixed."
BANDS = (
    "Bands hold precision and recall, and recall and the false positive rate, at all thresholds together with {level} "
    "confidence (sup-t bands: Montiel Olea and Plagborg-Møller 2019)."
)


def sentences(measured: Measured) -> Iterator[str]:
    """Say how labelled scores were evaluated, and what came out."""
    areas = measured.tables["threshold_sweep_areas"]
    weighted = "weighted, " if measured.has("predictions.weight") else ""
    counted, estimated = f"{measured.used('predictions'):,} {weighted}scored and labelled predictions", "computed"
    if _is_sample(measured):
        scored = measured.used("predictions") + measured.accounts["predictions"].get("not_labelled", 0)
        counted, estimated = f"{scored:,} {weighted}scored predictions", "estimated"
        counted += f", of which a sample of {measured.used('predictions'):,} is labelled,"
    yield (
        f"Precision, recall and F1 of {counted} were {estimated} {sections.thresholds(measured)}; a prediction counts "
        f"as positive if its score is {sections.at_or_above(measured)} the threshold."
    )
    yield sections.left_out(measured, {"predictions": "predictions"})
    yield sections.invalid_scores(measured, "Predictions")
    yield (
        "Average precision is the step sum of precision over recall, tied scores entering together (Buckley and "
        "Voorhees 2000), and the ROC area counts ties as half (Mann and Whitney 1947)."
    )
    if measured.parameters["method"] == "binned":
        width = measured.parameters["width"]
        bounds = areas.get_column("log_likelihood_min", default=pl.Series([None]))
        numbers = "Areas" if bounds.is_null().all() else "Areas, log-likelihoods and Brier scores"
        yield f"{numbers} are midpoints of certain bounds, at most {width:g} apart, from counts in cells of scores."
    yield _intervals(measured)
    if measured.parameters["bands"]:
        yield BANDS.format(level=measured.confidence)
    yield sections.criteria(measured)
    yield from decisions(measured)
    yield from _sizes(areas, "labelled predictions" if _is_sample(measured) else "predictions")
    names = {"average_precision": "average precision", "roc_auc": "the ROC area"}
    yield from sections.results(areas, names, measured.confidence)
    yield from calibration_sentences(measured)
    points = measured.tables["threshold_sweep_operating_points"]
    rows = on_other_data(sections.of_first_criterion(points))
    yield from sections.results(rows, sections.RATIO_NAMES, measured.confidence, sections.CHOSEN)


def _intervals(measured: Measured) -> str:
    independent = measured.facts["independent"]
    if _is_sample(measured) and measured.parameters["uncertainty"] != "none":
        return f"Limits of {measured.confidence} confidence {OF_SAMPLE}."
    fixed = FIXED if measured.parameters["class_sizes"] == "fixed" else ""
    if independent == "rows":
        closed_forms = PROPORTIONS.format(design="", clusters=" and independent rows")
        return sections.intervals(measured, "rows", closed_forms) + fixed
    units = sections.units_in_words(measured, {})
    two = " over both parents (Cameron, Gelbach and Miller 2011)" if " and " in independent else ""
    design = f" of counts divided by the design effect (Kish 1965), by the jackknife over {units}{two}"
    return sections.intervals(measured, units, PROPORTIONS.format(design=design, clusters=f" between {units}"))


def _is_sample(measured: Measured) -> bool:
    return measured.parameters.get("labels") is not None


def _sizes(areas: pl.DataFrame, noun: str) -> Iterator[str]:
    shown, _ = sections.headline_rows(areas)
    for row in shown:
        group = sections.named_group(row)
        yield f"{row['n_positive']:,} of {row['n']:,} {noun}{f' of {group}' if group else ''} are positive."


# What the numbers of threshold_sweep rest on: rows, or clusters of them.


_POSITIVES, _KEPT = "positives", "kept predictions"
_COUNTS = (
    Counted("predictions", ("tp", "fp", "fn", "tn")),
    Counted("predictions", ("n",)),
    Counted(_POSITIVES, ("tp", "fn")),
    Counted(_POSITIVES, ("n_positive",)),
    Counted("negatives", ("fp", "tn"), is_listed=False),
    Counted(_KEPT, ("tp", "fp")),
    Counted("positive or kept predictions", ("tp", "fp", "fn"), is_listed=False),
)
_AREAS = (*AREAS, PARTIAL)
SAMPLE_SIZES = SampleSizes(
    nouns={"rows": "predictions"},
    counts=_COUNTS,
    rests_on={**nouns_of(OF_LABELS, _COUNTS), **dict.fromkeys(_AREAS, _POSITIVES)},
    scales={**scales(OF_LABELS), **dict.fromkeys(_AREAS, "logit")},
    clusters="threshold_sweep_areas",
)


# What scikit-learn does otherwise.


_RATIOS = ("precision", "recall", "f1")


def _end_point(recounted: Recounted) -> float | None:
    """The addition of the point (recall 0, precision 1) to the area, beside (0, precision of the highest score).

    It is half of recall × (1 − precision) there: a triangle on top of the first strip.
    """
    curve = recounted.of_group("threshold_sweep_curve").sort(THRESHOLD)
    if curve.is_empty():
        return None
    row = curve.row(-1, named=True)
    if row["precision"] is None or row["recall"] is None:
        return None
    return float(row["recall"] * (1 - row["precision"]) / 2)


SCIKIT_LEARN = Profile(
    name="scikit-learn",
    tool="scikit-learn 1.9",
    measures={
        "precision": "precision_score(label, score >= threshold)",
        "recall": "recall_score(label, score >= threshold)",
        "f1": "f1_score(label, score >= threshold)",
        "average_precision": "average_precision_score(label, score)",
        "roc_auc": "roc_auc_score(label, score)",
        "partial_roc_auc": "roc_auc_score(label, score, max_fpr=max_fpr)",
        "pr_auc": "auc(recall, precision) of precision_recall_curve(label, score)",
        "brier": "brier_score_loss(label, score)",
    },
    conventions=(
        Convention(
            "rows without a finite score",
            "refuses them, so that they must be left out",
            {"invalid_scores": "drop"},
            keeps={"invalid_scores": "error"},  # then the run had none
            section=Section(
                "without_score",
                "Rows without a finite score",
                "Rows that count as below every threshold here, in the order of the files.",
                "threshold_sweep/explain/without_score",
                segment=identity,
                inputs=INPUTS,
                hides=location_of_known,
            ),
        ),
        Convention(
            "a score equal to the threshold",
            "is retrieved",
            {"boundary": ">="},
            measures=(*_RATIOS, "pr_auc"),
            section=Section(
                "at_threshold",
                "Rows with a score equal to the threshold",
                "Rows that are retrieved there and not here, in the order of the files.",
                "threshold_sweep/explain/at_threshold",
                segment=identity,
                inputs=INPUTS,
                hides=location_of_known,
            ),
        ),
        Convention("areas", "every score, in order", {"method": "exact"}, measures=("average_precision", "roc_auc")),
        Convention(
            "thresholds of the area",
            "every distinct score",
            {"thresholds": "distinct"},
            measures=("pr_auc", "partial_roc_auc"),
        ),
        Convention(
            "the point at recall 0",
            "precision is 1",
            ours="precision is that of the highest score",
            measures=("pr_auc",),
            change=_end_point,
        ),
        Convention(
            "nothing retrieved, or nothing to find",
            "0, with a warning (zero_division)",
            ours="NULL",
            measures=_RATIOS,
            undefined=0.0,
        ),
    ),
    exactly="with sample_weight where rows have weights",
)


# Where the numbers of threshold_sweep come from: errors, rows near the threshold, and clusters that carry them.


_CURVE_TABLE, _AREAS_TABLE = "threshold_sweep_curve", "threshold_sweep_areas"
_OF_BINS = (
    Measure(
        "share_positive",
        RELIABILITY_TABLE.name,
        ((("share_positive", "weight_positive / weight"),), (("share_positive", "n_positive / n"),)),
    ),
    Measure("gap", RELIABILITY_TABLE.name, ((("gap", "share_positive - mean_score"),),)),
)


def _measure(metric: Ratio | Index) -> Measure:
    """A number of the weights if there are any, else of the counts."""
    return Measure(
        metric.name, _CURVE_TABLE, tuple(((metric.name, metric.formula(suffix)),) for suffix in ("_weight", ""))
    )


def _rows(asked: Asked) -> exp.Query:
    """The predictions that count; those without a valid score may, below every threshold."""
    score: str | exp.Expr = "score"
    if asked.params.counts_missed:
        score = exp.func("coalesce", column("score"), double(-math.inf))
    relations = {} if asked.params.labels is None else {"predictions_read": DRAWN}
    return statement(
        "threshold_sweep/explain/rows", identity(asked), columns={"used_score": score}, relations=relations
    )


def _values(asked: Asked) -> dict[str, float]:
    threshold = asked.lowest_score if asked.threshold is None else asked.threshold
    return {"lowest_score": asked.lowest_score, "threshold": threshold}


def _clusters(clusters: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    if asked.params.labels is not None or asked.plan.sources[0].has("weight"):
        return with_influence(clusters, asked.measure, "_weight")
    return with_influence(clusters.select("cluster", "tp", "fp", "fn", "tn"), asked.measure)


def _without_clusters(asked: Asked) -> str:
    if not asked.params.cluster_column:
        return "the rows are independent: the config names no cluster"
    return untold(asked, "clusters", tuple(ratio.name for ratio in OF_LABELS))


EVIDENCE = Evidence(
    measures=(
        *map(_measure, OF_LABELS),
        *map(_measure, FURTHER),
        *(Measure(name, _AREAS_TABLE) for name in (*AREAS, PARTIAL, "log_likelihood", "brier")),
        *_OF_BINS,
        *(Measure(name, CALIBRATION_TABLE.name) for name in ("ece", "mce", "reliability", "spiegelhalter_z")),
    ),
    sections=(
        Section(
            "false_positives",
            "False positives",
            "Rows with a false label and a score that {threshold} retrieves, the highest scores first.",
            "threshold_sweep/explain/false_positives",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "false_negatives",
            "False negatives",
            "Rows with a true label and a score below {threshold}, the lowest scores first.",
            "threshold_sweep/explain/false_negatives",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "nearest",
            "Rows nearest to the threshold",
            "Rows in the order of their distance from {threshold}: a slightly other threshold turns these.",
            "threshold_sweep/explain/nearest",
            segment=identity,
            inputs=INPUTS,
            hides=location_of_known,
        ),
        Section(
            "clusters",
            "Clusters that carry the estimate",
            "Each cluster with the {measure} that all others have without it; the largest influence first.",
            "threshold_sweep/explain/clusters",
            finish=_clusters,
            ranks=True,
            columns=lambda asked: {"cluster_key": str(asked.params.cluster_column)},
            absent=_without_clusters,
        ),
    ),
    rows=lambda asked: {EXPLAINED_ROWS: _rows(asked)},
    points="threshold_sweep_operating_points",
    values=_values,
    profiles=(SCIKIT_LEARN,),
    decides=("boundary", "thresholds", "invalid_scores", "cluster", "operating_points"),
)
