"""Words about a stage as data: the sections of `explain`, and sentences for a methods section."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.columns import lowest_retrieved
from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL, group_text, internal_name
from ..base.visible_text import listed, percent, percent_limits
from ..metrics.uncertainty.limits import DOUBTFUL, INTERVAL_QUALITY, MEANINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ..plan.nodes import Node
    from ..plan.plan import Plan
    from ..sources.source import Source


Form = tuple[tuple[str, str], ...]
"""Steps to a number: the name of each quantity, with its formula of columns of the row and of earlier steps."""


@dataclass(frozen=True)
class Measure:
    """A number that can be explained.

    Attributes:
        name: Its column, which also has its definition.
        table: The result table.
        forms: How it follows from counts; the first of which every column is there and not NULL is shown.
    """

    name: str
    table: str
    forms: tuple[Form, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """The evidence that `explain` shows of a stage.

    Attributes:
        measures: Its numbers, the main one first.
        sections: The rows behind them.
        rows: What sections are about, each a relation or a query with all grouping columns, by the name under which
            queries read the rows of the explained group.
        points: The table with the threshold that the summary speaks of, in the rows of its first criterion; empty: it
            speaks of the highest.
        threshold: The column of thresholds; empty: the numbers have none.
        preferred: Values of other key columns that the summary speaks of.
        values: Parameters of the queries by name.
        quantities: What formulas need beyond the row, by name.
        nodes: What is asked of the engine in place of nodes of the plan that make the same.
        parameters: Parameters that differ from those of the run, so that rows carry what people want to see.
        independent: What is independent, where the record of the run does not say it.
        profiles: Tools whose numbers can be compared.
        decides: Keys of the config that decide the numbers, shown even where they have their default.
    """

    measures: tuple[Measure, ...]
    sections: tuple[Section, ...]
    rows: Callable[[Asked], Mapping[str, str] | Mapping[str, str | exp.Query]]
    points: str = ""
    threshold: str = "threshold"
    preferred: Mapping[str, str] = field(default_factory=dict)
    values: Callable[[Asked], dict[str, float]] = lambda asked: {"lowest_score": asked.lowest_score}
    quantities: Callable[[Asked], dict[str, float]] = lambda _asked: {}
    nodes: Callable[[Asked], tuple[Node, ...]] = lambda _asked: ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    independent: str = "rows"
    decides: tuple[str, ...] = ()


EXPLAINED_ROWS = "explained_rows"


@dataclass(frozen=True)
class Asked:
    """The number to be explained: of one group.

    Attributes:
        params: The parameters of the stage.
        plan: Its plan.
        tables: Its result tables.
        measure: The number.
        row: The row of the result table that has it, grouping columns under their internal names.
        group: Grouping columns of that row, internal names, with their values; empty for the total.
        threshold: The threshold of the row; None where there is none.
    """

    params: Any
    plan: Plan
    tables: Mapping[str, pl.DataFrame]
    measure: str
    row: Mapping[str, Any]
    group: Mapping[str, Any]
    threshold: float | None

    @property
    def lowest_score(self) -> float:
        """The lowest score that the threshold retrieves; minus infinity without a threshold."""
        return float("-inf") if self.threshold is None else lowest_retrieved(self.threshold, self.params.boundary)

    @property
    def by(self) -> tuple[str, ...]:
        """Internal names of all grouping columns."""
        return tuple(internal_name(grouped.label) for grouped in self.plan.by)

    def source(self, name: str) -> Source | None:
        """Return an input of the stage, if it was given."""
        return next((source for source in self.plan.sources if source.name == name), None)


@dataclass(frozen=True)
class Sheet:
    """Rows that people fill in, which a later run reads back as an input.

    Attributes:
        input: The input.
        key: Columns that tell the rows apart.
        verdict: The column that people fill in: true or false.
    """

    input: str
    key: tuple[str, ...]
    verdict: str


def _unchanged(frame: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    return frame


@dataclass(frozen=True)
class Section:
    """Rows behind a number, the most telling first.

    Attributes:
        name: Its name on the command line.
        title: What the rows are.
        sentence: Why they are here and in which order; `{threshold}` stands for the threshold and `{measure}`
            for the number.
        query: The query file of its rows, which reads `explained_rows`; empty: it shows rows of `table`.
        table: A result table whose rows it shows.
        reads: Further query files whose rows it needs, by name.
        finish: Makes the rows that are shown from those of the query, those of `reads` and what is asked.
        ranks: Whether `finish` puts the rows in order, and so needs all of them.
        segment: What `segment` stands for in its queries; default: the grouping columns.
        columns: What stands for columns of its queries that have another name in the relations.
        inputs: Inputs whose own columns are shown beside, each with its key: canonical name → column of the rows.
        hides: Columns that are needed to find others and are not shown.
        absent: Why there is no such section for what is asked; empty if there is.
        sheet: What people fill in of it; such a section is shown only when it is asked for by name, with all its rows.
    """

    name: str
    title: str
    sentence: str
    query: str = ""
    table: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    finish: Callable[[pl.DataFrame, Mapping[str, pl.DataFrame], Asked], pl.DataFrame] = _unchanged
    ranks: bool = False
    segment: Callable[[Asked], tuple[str, ...]] = lambda asked: asked.by
    columns: Callable[[Asked], Mapping[str, str | exp.Expr]] = lambda _asked: {}
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hides: Callable[[Asked], tuple[str, ...]] = lambda _asked: ()
    absent: Callable[[Asked], str] = lambda _asked: ""
    sheet: Sheet | None = None


# Conventions of other tools, as data: what they do otherwise, and which options of ours do the same.


@dataclass(frozen=True)
class Recounted:
    """The tables of a stage under some conventions of a tool.

    Attributes:
        tables: The result tables.
        row: The row of the explained group and threshold in the table of the number.
        of_group: Rows of a result table that belong to the explained group.
    """

    tables: Mapping[str, pl.DataFrame]
    row: Mapping[str, Any]
    of_group: Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class Convention:
    """A choice that changes a number, as a tool makes it.

    Attributes:
        topic: What is chosen.
        tool: What the tool does.
        options: Keys of the config with the values that do the same; without any there is no such option.
        keeps: Other values of these keys that come to the same.
        ours: What is done here where there is no option.
        measures: The numbers that it can change; none: all of the profile.
        change: What it adds to the number where there is no option.
        undefined: What the tool gives where the number is NULL; None: it gives none either.
        needs_scores: Whether it is about scores, and is left out where no input has any.
        section: The rows that make the difference.
    """

    topic: str
    tool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    keeps: Mapping[str, Any] = field(default_factory=dict)
    ours: str = ""
    measures: tuple[str, ...] = ()
    change: Callable[[Recounted], float | None] | None = None
    undefined: float | None = None
    needs_scores: bool = False
    section: Section | None = None


@dataclass(frozen=True)
class Profile:
    """A tool whose number can be had with our options.

    Attributes:
        name: Its name on the command line.
        tool: What it is called, with the version that it was compared with.
        measures: Our names of numbers, with its own.
        conventions: What it does, in the order in which the options are changed.
        exactly: When the number is that of the tool, in words.
        units: The result table with one row per unit, its key and the numbers that are compared; empty: none.
        all_scores: Whether the tool knows no scores, so that every prediction counts.
        refuses: Why its number cannot be computed with these parameters; empty if it can.
    """

    name: str
    tool: str
    measures: Mapping[str, str]
    conventions: tuple[Convention, ...]
    exactly: str
    units: tuple[str, str, tuple[str, ...]] | None = None
    all_scores: bool = False
    refuses: Callable[[Any], str] = lambda _params: ""


# Sentences for a methods section that several stages share: what was measured, on what, how, and what came out.


MOST_GROUPS = 4  # whose numbers are given
CHOSEN = "At a threshold of {threshold:.4g}"
RATIO_NAMES = {"precision": "precision", "recall": "recall", "f1": "F1"}
MOST_THRESHOLDS = 6  # that are listed
BOOTSTRAP = "Efron and Tibshirani 1993; Cameron, Gelbach and Miller 2008; Hall 1988"


@dataclass(frozen=True)
class Measured:
    """A stage of a published run, from which its methods are told.

    Attributes:
        parameters: Its parameters as the run record holds them.
        facts: What it decided from its inputs, by name.
        bindings: What every `input.field` is read from: its source, column or expression.
        accounts: Rows of every input: by what became of them, and `rows_in`.
        tables: Its result tables by name, grouping columns under the names that they have inside a run.
    """

    parameters: Mapping[str, Any]
    facts: Mapping[str, str]
    bindings: Mapping[str, Mapping[str, str]]
    accounts: Mapping[str, Mapping[str, int]]
    tables: Mapping[str, pl.DataFrame]

    @property
    def confidence(self) -> str:
        """The level of the intervals."""
        return f"{100 * self.parameters['confidence']:.10g}%"

    def has(self, field: str) -> bool:
        """Whether `input.field` is read from the files."""
        return self.bindings.get(field, {}).get("source") in {"mapped", "named"}

    def used(self, name: str) -> int:
        """Number of rows of an input that were used."""
        return self.accounts[name].get("used", 0)

    def most(self, numbers: pl.Series) -> str:
        """Return the largest of the numbers of groups, as text that says so if there are groups."""
        values = set(numbers)
        return "no" if not values else f"{max(values):,}" if len(values) == 1 else f"up to {max(values):,}"


# rows without a label, or that nobody judged, stand behind those that were drawn
_NOT_LEFT_OUT = {"used", "rows_in", "not_labelled", "not_judged"}


def left_out(measured: Measured, nouns: Mapping[str, str]) -> str:
    """Say which rows were not used and why, with what rows of an input are called; empty if all were."""
    phrases = []
    for name, noun in nouns.items():
        account = measured.accounts.get(name, {})
        reasons = {status: n for status, n in account.items() if n and status not in _NOT_LEFT_OUT}
        if reasons:
            words = listed(f"{n:,} {status.replace('_', ' ')}" for status, n in sorted(reasons.items()))
            phrases.append(f"{sum(reasons.values()):,} of {account['rows_in']:,} {noun} ({words})")
    return f"Left out were {listed(phrases)}." if phrases else ""


def thresholds(measured: Measured) -> str:
    """Say at which thresholds: `at 99 evenly spaced thresholds from 0.01 to 0.99`."""
    values = measured.parameters["thresholds"]
    if isinstance(values, dict):
        return f"at {values['count']:,} evenly spaced thresholds from {values['start']:g} to {values['stop']:g}"
    if isinstance(values, list) and len(values) <= MOST_THRESHOLDS:
        noun = "thresholds" if len(values) > 1 else "threshold"
        return f"at the {noun} {listed(f'{value:g}' for value in values)}"
    if isinstance(values, list):
        return f"at {len(values):,} thresholds from {values[0]:g} to {values[-1]:g}"
    return "at every distinct score"


def at_or_above(measured: Measured) -> str:
    """Say which scores a threshold retrieves."""
    return "at or above" if measured.parameters["boundary"] == ">=" else "above"


def scored_predictions(measured: Measured) -> str:
    """Say which predictions count at a threshold."""
    return f"Predictions with a score {at_or_above(measured)} a threshold count, {thresholds(measured)}."


def invalid_scores(measured: Measured, noun: str) -> str:
    """Say what became of rows without a score, if that was asked for; else empty."""
    rule = measured.parameters.get("invalid_scores", "error")
    if rule == "drop":
        return f"{noun} without a valid score were left out."
    return f"{noun} without a valid score counted as below every threshold." if rule == "missed" else ""


def criteria(measured: Measured) -> str:
    """Say how thresholds were chosen."""
    asked = measured.parameters["operating_points"]
    fixed = [f"{criterion['threshold']:.10g}" for criterion in asked if criterion.get("threshold") is not None]
    phrases = [_criterion(criterion) for criterion in asked if criterion.get("threshold") is None]
    sentences = []
    if phrases:
        sentences.append(
            f"Thresholds were chosen on the same data: {listed(phrases)}; of equally good ones the lowest."
        )
    if fixed:
        words = "A threshold of {} was" if len(fixed) == 1 else "Thresholds of {} were"
        sentences.append(f"{words.format(listed(fixed))} given beforehand.")
    return " ".join(sentences)


def _criterion(criterion: Mapping[str, Any]) -> str:
    if (beta := criterion["beta"]) is not None:
        return f"the one with the highest F{beta:g}"
    if (most := criterion.get("max_alerts")) is not None:
        return f"the lowest one that retrieves at most {most:,}"
    if (share := criterion.get("max_alert_share")) is not None:
        return f"the lowest one that retrieves at most {100 * share:.10g}% of all"
    if (cost := criterion.get("cost")) is not None:
        return f"the one with the lowest cost, {_cost(cost)}"
    name, best = ("precision", "recall") if criterion["min_precision"] is not None else ("recall", "precision")
    minimum = f"the one with the highest {best} at a {name} of at least {criterion[f'min_{name}']:.10g}"
    level = criterion["confidence"]
    return minimum if level is None else f"{minimum}, which holds on new data with {100 * level:.10g}% confidence"


def _cost(cost: Mapping[str, float]) -> str:
    words = {"fp": "a false positive", "fn": "a false negative", "tp": "a true positive", "tn": "a true negative"}
    return listed([f"{cost[name]:.10g} for {what}" for name, what in words.items() if cost[name]])


def intervals(measured: Measured, units: str, closed_forms: str) -> str:
    """Say how limits were computed, by resamples of units or closed forms, told after `Limits of 95% confidence …`."""
    parameters = measured.parameters
    if parameters["uncertainty"] == "none":
        return "No intervals were computed."
    if parameters["uncertainty"] == "bootstrap":
        return (
            f"Limits of {measured.confidence} confidence are those of the studentised bootstrap with "
            f"{parameters['resamples']:,} resamples of {units} ({BOOTSTRAP}; seed {parameters['seed']})."
        )
    return f"Limits of {measured.confidence} confidence {closed_forms}."


def units_in_words(measured: Measured, nouns: Mapping[str, str]) -> str:
    """Say what is independent, several of them, from the columns that identify it."""
    columns = measured.facts["independent"].split(" and ")
    return listed(nouns.get(column, f"values of {column}") for column in columns)


def of_first_criterion(points: pl.DataFrame) -> pl.DataFrame:
    """Return the operating points of the first criterion."""
    return points if points.is_empty() else points.filter(pl.col("criterion") == points["criterion"][0])


def headline_rows(rows: pl.DataFrame) -> tuple[list[dict[str, Any]], int]:
    """Return the rows whose numbers are given, the total or else the first groups, and how many groups are not."""
    total = rows.filter(pl.col(GROUPING.name) == TOTAL)
    chosen = rows.head(MOST_GROUPS) if total.is_empty() else total.head(1)
    return chosen.to_dicts(), rows.height - chosen.height


def results(rows: pl.DataFrame, words: Mapping[str, str], level: str, where: str = "") -> Iterator[str]:
    """Give ratios with their limits, in a sentence for the total or for each of the first groups, one a row.

    `where` on the curve is a format of the threshold: `At a threshold of {threshold:.4g}`.
    """
    shown, n_more = headline_rows(rows)
    for row in shown:
        phrases = [f"{word} was {estimate(row, name, level)}" for name, word in words.items() if row[name] is not None]
        start = filled(where, row)
        group = named_group(row)
        head = ", ".join(filter(None, (start, group and f"for {group}")))
        head = f"{head}, cross-fitted" if row.get("_choice") == "other_data" else head
        body = listed(phrases) if phrases else f"no {listed(words.values(), 'or')} is defined"
        yield f"{head}, {body}." if head else f"{body}."
    if n_more > 0 and shown and shown[0][GROUPING.name] != TOTAL:
        yield f"Numbers of {n_more:,} further groups are in the tables."
    yield from doubts(shown)


def named_group(row: Mapping[str, Any]) -> str:
    """Name the group of a row with its grouping; empty for the total."""
    return "" if row[GROUPING.name] == TOTAL else f"{row[GROUPING.name]} {group_text(row)}"


def filled(where: str, row: Mapping[str, Any]) -> str:
    """Fill in the threshold of a row; empty where it has none."""
    threshold = row.get("threshold", 0.0)
    return "" if threshold is None else where.format(threshold=threshold)


def estimate(row: Mapping[str, Any], name: str, level: str) -> str:
    """Give a ratio with its limits: `90.1% (95% CI 86.8–92.6%)`."""
    lower, upper = row.get(f"{name}_lower"), row.get(f"{name}_upper")
    value = percent(row[name])
    if lower is None or upper is None:
        return value
    return f"{value} ({level} CI {percent_limits(lower, upper, 1)}%)"


def doubts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say which limits of some rows cannot be vouched for."""
    for quality in DOUBTFUL:
        if any(row.get(INTERVAL_QUALITY) == quality for row in rows):
            yield f"These limits are doubtful: {MEANINGS[quality]}."
