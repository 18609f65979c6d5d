"""What a methods section says of geocoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tables.ratios import F1, PRECISION, RECALL, scales
from .. import methods
from ..mentions.rules import rule_in_words
from ..units import Counted, SampleSizes
from .results import TOLERANCE, at_usual_tolerance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..methods import Measured


NOUNS = {"predicted": "predicted places", "gold": "gold places"}
DISTANCES = {
    "haversine": "along great circles on a sphere of 6371.0088 km",
    "geodesic": "along geodesics of the WGS84 ellipsoid (Karney 2013)",
}
CANDIDATES = {
    "first": "Of several candidates of a mention the first counts.",
    "closest": "Of several candidates of a mention the one nearest to the gold place counts, an upper limit.",
    "error": "",
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how predicted places were compared with gold places, and what came out."""
    parameters = measured.parameters
    aligned = "by their ids" if parameters["match"] is None else f"as {rule_in_words(parameters)}"
    yield (
        f"{measured.used('predicted'):,} predicted places were compared with {measured.used('gold'):,} gold places; "
        f"mentions were aligned {aligned}, and distances measured {DISTANCES[parameters['distance']]}."
    )
    yield methods.left_out(measured, NOUNS)
    yield CANDIDATES[parameters["candidates"]]
    within = "at most" if parameters["tolerance_boundary"] == "<=" else "less than"
    tolerances = methods.listed((f"{value:g}" for value in parameters["tolerances_km"]), "or")
    yield (
        f"A place is right if it lies {within} {tolerances} km from the gold place; precision is the share of right "
        "ones among the located mentions, recall among all gold mentions."
    )
    units = methods.units_in_words(measured, {"doc_id": "documents", "rows": "mentions"})
    yield methods.intervals(
        measured,
        units,
        "of ratios are those of proportions whose counts are divided by the design effect, by the jackknife over "
        f"{units}; those of the mean error are symmetric on the log scale",
    )
    yield from _results(measured)


def _results(measured: Measured) -> Iterator[str]:
    scores = at_usual_tolerance(measured.tables["geocoding_scores"])
    within = f"Within {scores[TOLERANCE][0]:g} km" if not scores.is_empty() else ""
    yield from methods.results(scores, methods.RATIO_NAMES, measured.confidence, within)
    shown, _ = methods.headline_rows(measured.tables["geocoding_errors"])
    for row in shown:
        if row["mean_km"] is not None:
            group = methods.named_group(row)
            limits = (
                ""
                if row["mean_km_lower"] is None
                else f" ({measured.confidence} CI {row['mean_km_lower']:.1f}\u2013{row['mean_km_upper']:.1f} km)"
            )
            yield (
                f"The mean error{f' of {group}' if group else ''} was {row['mean_km']:.1f} km{limits}, the median "
                f"{row['median_km']:.1f} km."
            )


# What the numbers of geocoding rest on: documents, or mentions, with their places.


_GOLD, _LOCATED = "gold mentions", "located mentions"
SAMPLE_SIZES = SampleSizes(
    nouns={"doc_id": "documents", "mention_id": "gold mentions"},
    counts=(
        Counted(_GOLD, ("n_gold",)),
        Counted(_LOCATED, ("n_attempted",)),
        Counted(_LOCATED, ("n_located",)),
    ),
    rests_on={"precision": _LOCATED, "recall": _GOLD, "f1": _GOLD},
    scales={**scales((PRECISION, RECALL, F1)), "mean_km": "log"},
    clusters="geocoding_scores",
    sized_by=_GOLD,
)
