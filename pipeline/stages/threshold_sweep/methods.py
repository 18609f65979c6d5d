"""What a methods section says of threshold_sweep, and what its numbers rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.ratios import OF_LABELS, scales
from .. import sections
from ..figures import on_other_data
from ..stage import Counted, SampleSizes, nouns_of
from .calibration import calibration_sentences
from .figures import decisions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..sections import Measured


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
_AREAS = ("average_precision", "pr_auc", "roc_auc")
SAMPLE_SIZES = SampleSizes(
    nouns={"rows": "predictions"},
    counts=_COUNTS,
    rests_on={**nouns_of(OF_LABELS, _COUNTS), **dict.fromkeys(_AREAS, _POSITIVES)},
    scales={**scales(OF_LABELS), **dict.fromkeys(_AREAS, "logit")},
    clusters="threshold_sweep_areas",
)
