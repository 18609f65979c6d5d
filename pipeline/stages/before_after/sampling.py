"""Matches for people to check, drawn by strata of scores, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import sqlglot.expressions as exp

from ...base.dialect import column
from ...base.errors import ConfigError
from ...base.schemas import internal_name
from ...base.sql_files import statement
from ...metrics.few_labels.draws import worth_of_rows_alike
from ...plan import rows
from ...plan.nodes import Relation, missing_check
from ...plan.plan import Plan
from ...sources.inputs import Field as InputField
from ..sampling import SampleParameters, ShownBeside, labelled_contract, nodes_of
from ..stage import Stage
from .contract import ARTICLES, EVENTS, PAIRS, BeforeAfterParameters
from .inputs import PAIR
from .labels import parameters_of_matches
from .planning import Resolved, checks_of, columns_of_events, relations, used_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...sources.source import Source
    from ..sampling import Worth

OF_MATCHES = ("pairs", "events", "articles", "window", "compared", "thresholds", "audit", "boundary", "duplicates")
"""The keys of the stage that tell which matches an audit is of."""


class MatchesToSample(SampleParameters, BeforeAfterParameters):
    """Parameters of drawing matches after their event, and of the pairs that they are of."""

    source: ClassVar[str] = PAIRS.name
    key: ClassVar[tuple[str, ...]] = PAIR
    nouns: ClassVar[str] = "matches"
    kind: Literal["sample"] = "sample"  # type: ignore[assignment] # a draw is no run of the stage

    @classmethod
    def worth_of(cls) -> Worth:
        """Precision from each threshold on is wanted, so that matches are worth the same."""
        return worth_of_rows_alike


def plan(params: MatchesToSample, sources: Mapping[str, Source]) -> Plan:
    """Read the matches that an audit is of with the cells of their scores, and the sheet of the earlier draw.

    Raises:
        ConfigError: nothing says which matches an audit is of.
    """
    if params.audit is None:
        message = "audit says from which score on matches are drawn, and is not there"
        raise ConfigError(message, remedy="Write audit = { threshold = … } in the config.")
    events, articles = (sources.get(name) for name in ("events", "articles"))
    run = Resolved(params, sources["pairs"], events, articles, None, None, None)
    run.check()
    matches = statement(
        "before_after/audit_matches",
        [each.name for each in run.by],
        values=parameters_of_matches(params.audit, run.bounds, params.boundary),
    )
    columns = [*(each.name for each in run.by), *PAIR]
    to_sample = statement("threshold_sweep/rows_to_sample", columns, relations={"predictions_read": "audit_matches"})
    groups = [internal_name(name) for name in params.groups]
    return Plan(
        nodes=(
            *relations(run),
            *run.matchers.relations(columns_of_events(run)),
            *used_pairs(run, run.by).relations(),
            Relation("audit_matches", matches),
            missing_check(run.pairs, "article_id"),
            *checks_of(run),
            *nodes_of(to_sample, groups, _labelled(sources.get("labelled"))),
            *_shown(params, run),
        ),
        sources=tuple(sources.values()),
        by=run.by,
    )


def _labelled(sheet: Source | None) -> Relation | None:
    """The sheet of the earlier draw, with the key of a pair as one text."""
    if sheet is None:
        return None
    texts = [exp.cast(column(name, "canonical"), exp.DataType.Type.VARCHAR) for name in PAIR]
    key = exp.DPipe(this=exp.DPipe(this=texts[0], expression=exp.Literal.string(":")), expression=texts[1])
    return rows.read(sheet, [*PAIR, "label"], (), {"id": key})


def _shown(params: MatchesToSample, run: Resolved) -> Iterator[ShownBeside]:
    """The columns to look at, of pairs, events and articles."""
    shown = rows.resolve_by(
        [tuple(name for name in params.shown if name not in params.groups)], run.sources, key="columns"
    )
    for source in run.sources:
        keys = tuple(name for name in PAIR if source.has(name))
        if columns := tuple(each for each in shown if each.source == source.name):
            yield ShownBeside(source, keys, columns)


SAMPLE = Stage(
    kind="sample",
    parameters=MatchesToSample,
    inputs=(
        PAIRS,
        EVENTS,
        ARTICLES,
        labelled_contract(*(InputField(name, "key", "of a match that was drawn", required=True) for name in PAIR)),
    ),
    plan=plan,
)
