"""Inputs and parameters of before_after, and which fields are derived from which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ...metrics.before_after.estimates import ReferenceRule
from ...metrics.before_after.intervals import Choice
from ...metrics.curves.operating_points import MAX_DECIMALS, Criterion, each_once
from ...sources.bindings import KeyMatch
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ...tables.schemas import unlike_but_for_case
from ..parameters import StageParameters, Window, ascending
from .inputs import N_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...sources.source import Source
    from .inputs import Lag


# Inputs and parameters of before_after.


Fraction = Annotated[float, Field(ge=0, le=1)]
Recall = Annotated[float, Field(gt=0, le=1)]
Parent = Literal["day", "article_id"]  # of a pair, beside its event
Compared = Literal["events", "timelines", "pairs"]

PAIRS = InputContract(
    "pairs",
    (
        InputField("event_id", "key", "the event of the pair", required=True),
        InputField("score", "number", "similarity of the pair; higher is more alike", required=True),
        InputField("lag_hours", "number", "article time minus event time, in hours", as_written=True),
        InputField("lag_days", "number", "article time minus event time, in days", as_written=True),
        InputField("event_time", "instant", "when the event happened"),
        InputField("article_time", "instant", "when the article was published"),
        InputField("article_id", "key", "the article of the pair"),
    ),
    "scored event-article pairs",
    required=True,
    evaluated=True,
)
EVENTS = InputContract(
    "events",
    (
        InputField("event_id", "key", "the event", required=True),
        InputField("event_time", "instant", "when the event happened"),
        InputField("n_before", "integer", "articles compared with the event before it"),
        InputField("n_after", "integer", "articles compared with the event from its moment on"),
        InputField(
            "complete_window", "boolean", "whether articles cover the whole window of the event", mapped_only=True
        ),
    ),
    "one row per event, with its time or its numbers of compared articles",
    evaluated=True,
)
ARTICLES = InputContract(
    "articles",
    (
        InputField("article_id", "key", "the article"),
        InputField("article_time", "instant", "when the article was published"),
    ),
    "one row per article, with its time",
)

GOLD = InputContract(
    "gold",
    (
        InputField("event_id", "key", "the event of a true match", required=True),
        InputField("article_id", "key", "the article of a true match", required=True),
    ),
    "true matches found by people",
    evaluated=True,
    truth_of="pairs",
)
GOLD_ARTICLES = InputContract(
    "gold_articles",
    (InputField("article_id", "key", "an article that was coded", required=True),),
    "articles that people coded, with or without a match",
)
AUDITED = InputContract(
    "audited",
    (
        InputField("event_id", "key", "the event of a checked match", required=True),
        InputField("article_id", "key", "the article of a checked match", required=True),
        InputField("is_match", "boolean", "whether people found it right"),
        InputField("label", "any", "the same in a sheet: true, yes, 1; false, no, 0; empty: nobody has judged it yet"),
        InputField("probability", "number", "share of the matches like it that were drawn, if not all alike"),
        InputField("stratum", "key", "where it was drawn from, as `thresher sample` calls it"),
    ),
    "matches of the audit that people checked: of its sample, or of a sheet that `thresher sample` drew",
)


class Audit(BaseModel):
    """A random sample of matches for people to check.

    Attributes:
        threshold: Score from which a match after the event can be drawn.
        size: How many are drawn.
        seed: The same seed draws the same matches.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    threshold: float = Field(allow_inf_nan=False)
    size: int = Field(default=200, ge=1, le=1_000_000)
    seed: int = Field(default=1, ge=0, le=2**31 - 1)


class RecallReference(BaseModel):
    """The threshold at which recall is taken as known.

    Attributes:
        rule: `lowest`: the lowest threshold with enough precision; `max`: the one with most true positives among
            those; `fixed`: `threshold`.
        min_precision: Enough precision, at most 9 decimals.
        threshold: The reference of rule `fixed`.
        recall: What recall is believed to be there: a number, or a range [lowest, highest]. The estimates take the
            middle of a range, the intervals hold for all of it.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    rule: ReferenceRule = "lowest"
    min_precision: Fraction = 0.05
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    recall: Recall | tuple[Recall, Recall] = 1.0

    @model_validator(mode="after")
    def _complete(self) -> RecallReference:
        if (self.rule == "fixed") != (self.threshold is not None):
            message = 'threshold goes with rule = "fixed", and only with it'
            raise ValueError(message)
        if round(self.min_precision, MAX_DECIMALS) != self.min_precision:
            message = f"min_precision has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        if any(round(value, MAX_DECIMALS) != value for value in self.recalls):
            message = f"recall has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        if self.recalls[0] > self.recalls[-1]:
            message = f"recall: give the lowest value of the range first: [{self.recalls[-1]!r}, {self.recalls[0]!r}]"
            raise ValueError(message)
        return self

    @property
    def recalls(self) -> tuple[float, ...]:
        """The number, or both ends of the range."""
        return self.recall if isinstance(self.recall, tuple) else (self.recall,)

    @property
    def middle(self) -> float:
        """The number, or the middle of the range, which the estimates take."""
        return round(sum(self.recalls) / len(self.recalls), MAX_DECIMALS)

    @property
    def choice(self) -> Choice | None:
        """How the reference is chosen; None if it is given."""
        return None if self.rule == "fixed" else Choice(self.rule, self.min_precision)


class BeforeAfterParameters(StageParameters):
    """Parameters of before_after.

    Attributes:
        pairs: Scored event-article pairs.
        events: One row per event, with its time or its numbers of compared articles.
        articles: One row per article, with its time.
        gold: True matches found by people, for a comparison.
        gold_articles: The articles that were coded; only their pairs are judged. Default: those of gold.
        audited: Matches that people checked: of the audit sample, or of a sheet that `thresher sample` drew.
        window: Time around an event; default: every pair counts. Required for timelines.
        compared: Where the numbers of compared pairs come from: `events`: given there; `timelines`: counted from the
            times of events and articles; `pairs`: every compared pair is a row of pairs. Default: the first that the
            inputs allow.
        recall_reference: The threshold at which recall is taken as known.
        strata: What the false positive rate is adjusted for: `weekday`, `hour` or `volume` of the article, or columns.
        lag_thresholds: Thresholds at which matches are counted per day, and a trend before the event is tested.
        audit: A random sample of matches to draw for people to check: `{ threshold = 10.0, size = 200, seed = 1 }`.
        event_counts: Whether to count matches per event at the chosen threshold, which reads pairs once more; `auto`:
            while pairs has at most 10 million rows.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`.
    """

    most_parents: ClassVar[int] = 2
    inapplicable: ClassVar[frozenset[str]] = frozenset({"cluster_order"})
    kind: Literal["before_after"] = "before_after"
    pairs: Input
    events: Input | None = None
    articles: Input | None = None
    gold: Input | None = None
    gold_articles: Input | None = None
    audited: Input | None = None
    window: Window | None = None
    compared: Compared | None = None
    recall_reference: RecallReference = RecallReference()
    strata: tuple[str, ...] = ()
    lag_thresholds: tuple[float, ...] = ()
    audit: Audit | None = None
    event_counts: Literal["auto"] | bool = "auto"
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)

    @field_validator("cluster")
    @classmethod
    def _known_parent(cls, value: str | tuple[str, str] | None) -> str | tuple[str, str] | None:
        if isinstance(value, tuple) and value[1] not in get_args(Parent):
            message = f'the second parent of a pair is "day" or "article_id", not {value[1]!r}'
            raise ValueError(message)
        return value

    @field_validator("lag_thresholds")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        return ascending(value) if value else value

    @field_validator("strata")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "" in value or len(set(value)) < len(value):
            message = f"name each stratum once: {', '.join(value)}"
            raise ValueError(message)
        return value

    @field_validator("operating_points")
    @classmethod
    def _once(cls, value: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        value = each_once(value, counts_all=True)
        if any(each.youden_j for each in value):
            message = "youden_j needs true negatives, which are not estimated: use beta, or a cost"
            raise ValueError(message)
        if any(each.cost is not None and each.cost.tn for each in value):
            message = "cost: true negatives are not estimated, so that tn has no cost or gain: leave it out"
            raise ValueError(message)
        if any(each.confidence is not None and each.min_precision is None for each in value):
            message = "confidence goes with min_precision: recall has no limits here that hold at all thresholds"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _needs(self) -> BeforeAfterParameters:
        if alike := unlike_but_for_case(name for names in (*self.by, self.strata) for name in names):
            message = f"strata: {alike[0]!r} and {alike[1]!r} differ in case only: rename one with columns = {{ … }}"
            raise ValueError(message)
        if self.thresholds is None:
            message = "thresholds are required, for example { start = 0.1, stop = 60.0, count = 200 }"
            raise ValueError(message)
        if self.thresholds == "distinct" and self.recall_reference.rule == "fixed":
            message = 'recall_reference: rule = "fixed" needs thresholds that are given, not "distinct"'
            raise ValueError(message)
        if self.compared == "timelines" and self.window is None:
            message = 'window is required with compared = "timelines", for example { before = "168h", after = "72h" }'
            raise ValueError(message)
        if self.uncertainty == "bootstrap" and self.second_parent is not None:
            message = (
                'uncertainty = "bootstrap" draws events again, and does not know a second parent of pairs: set '
                'cluster = "event_id", or another column of events, or leave uncertainty out'
            )
            raise ValueError(message)
        if self.counts_missed and self.duplicates == "max":
            message = (
                'duplicates = "max" leaves out pairs by their score: invalid_scores = "missed" needs "error" or "keep"'
            )
            raise ValueError(message)
        return self

    @property
    def cluster_column(self) -> str | None:
        """Internal name of the column of the clusters of events; None: every event is one."""
        return None if self.first_cluster in {None, "event_id"} else super().cluster_column

    @property
    def second_parent(self) -> Parent | Literal["auto"] | None:
        """The parent of a pair beside its event; `auto`: what the inputs allow; None: there is none."""
        if self.cluster is None:
            return "auto"
        return cast("Parent", self.cluster[1]) if isinstance(self.cluster, tuple) else None

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds; a fixed reference that is not among them is added."""
        values = super().threshold_values
        fixed = self.recall_reference.threshold
        return values if values is None or fixed is None else tuple(sorted({*values, fixed}))


# Fields of the inputs: which are derived and from what, which mapped ones nothing reads, by which keys they meet.


def derived(lag: Lag, events: Source | None, compared: Compared, *, timed: bool) -> dict[str, str]:
    """Fields that are computed, `input.field` → from what; `timed`: with a window and times of events and articles."""
    fields = {} if lag.column == "lag_hours" else {"pairs.lag_hours": lag.words}
    if timed and events is not None and not events.has("complete_window"):
        fields["events.complete_window"] = "events.event_time, window and the range of articles.article_time"
    if compared == "timelines":
        fields |= dict.fromkeys(
            (f"events.{name}" for name in N_COLUMNS), "events.event_time, window and articles.article_time"
        )
    return fields


def inapplicable(lag: Lag, events: Source | None, compared: Compared) -> dict[str, str]:
    """Why mapped columns are not read, `input.field` → the reason, as far as one can tell."""
    missing = [name for name in N_COLUMNS if events is None or not events.has(name)]
    why = f"{missing[0]} is neither mapped nor named" if missing else f'compared = "{compared}" counts them itself'
    return lag.inapplicable() | {f"events.{name}": why for name in N_COLUMNS}


def key_matches(sources: Sequence[Source], *, lists_articles: bool) -> Iterator[KeyMatch]:
    """Keys by which pairs find events and articles, without which they are left out, and gold finds what it judges.

    Args:
        sources: The inputs, pairs first.
        lists_articles: Whether pairs whose article is not listed are left out.
    """
    by_name = {source.name: source for source in sources}
    pairs, articles, gold = sources[0], by_name.get("articles"), by_name.get("gold")
    if "events" in by_name:
        yield KeyMatch(pairs, by_name["events"], "event_id", "unlisted_event")
    if articles is not None and lists_articles:
        yield KeyMatch(pairs, articles, "article_id", "unlisted_article")
    if gold is not None:
        listed = articles if articles is not None and articles.has("article_id") else pairs
        yield KeyMatch(gold, by_name.get("events", pairs), "event_id")
        yield KeyMatch(by_name.get("gold_articles", gold), listed, "article_id")
    if gold is not None and "gold_articles" in by_name:
        yield KeyMatch(gold, by_name["gold_articles"], "article_id")
