"""What a methods section says of ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics.ranking.notation import measure_of
from ...visible_text import percent
from .. import methods
from ..units import SampleSizes
from .means import measure_names, with_measures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..methods import Measured


TIES = {
    "trec": "documents of equal rank by document id, descending, as trec_eval orders them",
    "expected": "every measure being its mean over all orders of tied documents (McSherry and Najork 2008)",
    "order": "ties being impossible",
}
MISSING = {
    "zero": "Queries for which a system retrieved nothing count as 0.",
    "skip": "Queries for which a system retrieved nothing are left out of its means.",
    "error": "",
}


SOURCES = {
    "nDCG": "nDCG divides the discounted gains by those of the best order (Järvelin and Kekäläinen 2002)",
    "RBP": "RBP is rank-biased precision (Moffat and Zobel 2008)",
    "ERR": "ERR is expected reciprocal rank (Chapelle et al. 2009)",
}
EXPONENTIAL = "with the gain exponential a document counts 2 to the power of its relevance, less 1 (Burges et al. 2005)"


def sentences(measured: Measured) -> Iterator[str]:
    """Say how rankings were evaluated, and what came out."""
    summary, parameters = measured.tables["ranking_summary"], measured.parameters
    yield (
        f"Rankings of {measured.used('ranking'):,} retrieved documents were evaluated query by query as trec_eval does "
        f"(Buckley and Voorhees 2000), a document counting as relevant from a relevance of "
        f"{parameters['relevance_level']:g} on."
    )
    yield methods.left_out(measured, {"ranking": "retrieved documents", "relevance": "judgements"})
    yield f"Documents were ordered by {measured.facts['order']}, {TIES[parameters['ties']]}."
    yield MISSING[parameters["missing_queries"]]
    treated = "count as 0" if parameters["no_relevant"] == "zero" else "are left out of the means"
    yield f"Queries without a relevant document {treated}."
    yield from _definitions(measure_names(measured.tables))
    units = methods.units_in_words(measured, {}) if "independent" in measured.facts else "queries"
    yield methods.intervals(
        measured,
        units,
        f"of means over queries are beta quantiles of a share with the variance between {units}, with the tails of "
        "Student's t",
    )
    shown, _ = methods.headline_rows(summary)
    for row in shown:
        group = methods.named_group(row)
        n_queries = row["n_queries"]
        words = "is 1 query" if n_queries == 1 else f"are {n_queries:,} queries"
        yield f"There {words}{f' of {group}' if group else ''}."
    names = {"map": "mean average precision", "r_precision": "R-precision", "reciprocal_rank": "mean reciprocal rank"}
    names |= {name: f"mean {name}" for name in measure_names(measured.tables)}
    yield from methods.results(with_measures(measured.tables), names, measured.confidence)
    expected = [percent(row["map_expected"]) for row in shown if row["map_expected"] is not None]
    if expected:
        values = methods.listed(dict.fromkeys(expected))
        yield f"Random selection would give a mean average precision of {values} (exact expectation: Bestgen 2015)."


def _definitions(names: Sequence[str]) -> Iterator[str]:
    """Say what the measures are that the config names, where a name alone does not."""
    measures = [measure_of(name) for name in names]
    kinds = dict.fromkeys(measure.kind for measure in measures)
    words = [SOURCES[kind] for kind in kinds if kind in SOURCES]
    if any(measure.gain == "exponential" for measure in measures):
        words.append(EXPONENTIAL)
    if words:
        yield f"{'; '.join(words)}."


# What the numbers of ranking rest on: queries, of whose values they are means.


SAMPLE_SIZES = SampleSizes(
    nouns={"query_id": "queries"},
    unit="query_id",
    units={"query_id": "n_queries"},
    other_scale="mean",
    clusters="ranking_summary",
    has_groups=False,
)
