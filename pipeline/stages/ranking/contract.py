"""Inputs, parameters and result tables of ranking."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ...base.schemas import Column, Table, limits_of, limits_of_share
from ...metrics.ranking.measures import RECALL_LEVELS, Interpolation, RankingMeasure, measure_of
from ...metrics.uncertainty.limits import CLUSTER_COLUMNS, QUALITY_COLUMN
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..parameters import StageParameters, Thresholds
from ..stage import CLUSTER

RANKING = InputContract(
    "ranking",
    (
        InputField("query_id", "key", "the query", required=True),
        InputField("doc_id", "key", "the document", required=True),
        InputField("score", "number", "score of the document for the query; higher comes first"),
        InputField("rank", "number", "rank of the document for the query; lower comes first"),
        InputField(
            "relevance",
            "number",
            "relevance of the document, NULL if not judged; used without relevance",
            truth_of="score",
        ),
    ),
    "one row per retrieved document of a query, with its score or rank",
    required=True,
    evaluated=True,
)
RELEVANCE = InputContract(
    "relevance",
    (
        InputField("query_id", "key", "the query", required=True),
        InputField("doc_id", "key", "the document", required=True),
        InputField("relevance", "number", "relevance of the document for the query", required=True),
    ),
    "one row per judged document of a query; default: the column relevance of the ranking",
    evaluated=True,
    truth_of="ranking",
)

COUNTS = (
    Column("n_rankings", "BIGINT", "rankings: queries with retrieved documents, for each value of the groupings"),
    Column("n_retrieved", "BIGINT", "documents in them"),
)


def _measure(name: str, meaning: str) -> Column:
    return Column(name, "DOUBLE", meaning, nullable=True)


INTERPOLATED = tuple(f"interpolated_{round(100 * level)}" for level in RECALL_LEVELS)
MEASURES = (
    _measure("average_precision", "mean precision at the relevant documents, those not retrieved counting 0"),
    _measure("r_precision", "precision among the first R documents, R being n_relevant"),
    _measure("reciprocal_rank", "1 / rank of the first relevant document; 0 if none is retrieved"),
    _measure("bpref", "share of relevant documents ranked above judged nonrelevant ones"),
    _measure("set_precision", "n_relevant_retrieved / n_retrieved; 0 if nothing is retrieved"),
    _measure("set_recall", "n_relevant_retrieved / n_relevant"),
    *(
        _measure(name, f"highest precision at or after recall {level:g}")
        for name, level in zip(INTERPOLATED, RECALL_LEVELS, strict=True)
    ),
)
MEASURE_NAMES = tuple(column.name for column in MEASURES)
UNDEFINED = Column("undefined", "VARCHAR", "why a value is NULL; NULL: all is defined")
UNDEFINED_P_VALUE = Column(
    "undefined_p_value",
    "VARCHAR",
    "why a p-value is NULL, beyond `undefined`; NULL: the p-value is given, or `undefined` says why not",
)
QUERIES = (
    Column("query_id", "KEY", "the query; NULL: never"),
    Column("n", "BIGINT", "documents in the pool: those ranked, or `n_candidates`"),
    Column("n_relevant", "BIGINT", "relevant documents, retrieved or not"),
    Column("n_retrieved", "BIGINT", "documents in the ranking"),
    Column("n_relevant_retrieved", "BIGINT", "relevant documents in the ranking"),
    *MEASURES,
    _measure("ap_expected", "mean of average_precision under random selection"),
    _measure("ap_variance", "variance of average_precision under random selection"),
    _measure("ap_p_value", "probability that random selection has at least this average precision"),
    Column("ap_p_value_method", "VARCHAR", "`exact`, `grid` or `monte_carlo`; NULL: undefined"),
    UNDEFINED,
    UNDEFINED_P_VALUE,
)
CUTOFFS = (
    Column("query_id", "KEY", "the query; NULL: never"),
    Column("k", "BIGINT", "number of first documents"),
    _measure("hits", "relevant documents among the first k; with ties `expected` a mean over their orders"),
    _measure("precision", "hits / k, also where fewer documents are ranked"),
    _measure("recall", "hits / n_relevant"),
    _measure("precision_expected", "mean of precision under random selection"),
    _measure("precision_variance", "variance of precision under random selection"),
    _measure("recall_expected", "mean of recall under random selection"),
    _measure("recall_variance", "variance of recall under random selection"),
    _measure("p_value", "probability that random selection has at least as many hits"),
    UNDEFINED,
    UNDEFINED_P_VALUE,
)


_N_QUERIES = Column("n_queries", "BIGINT", "rankings that the means are over")
_N_EXCLUDED = Column("n_excluded", "BIGINT", "rankings left out of the means, having no relevant document")
_UNDEFINED_INTERVAL = Column("undefined_interval", "VARCHAR", "why intervals are NULL; NULL: intervals are given")
SUMMARY = (
    _N_QUERIES,
    _N_EXCLUDED,
    _measure("map", "mean of average_precision over queries"),
    *limits_of_share("map"),
    *(
        column
        for measure in MEASURES[1:]
        for column in (
            _measure(measure.name, f"mean of {measure.name} over queries"),
            *(limits_of_share(measure.name) if measure.name not in INTERPOLATED else ()),
        )
    ),
    _measure("map_expected", "mean of map under random selection of every ranking"),
    _measure("map_variance", "variance of map under random selection"),
    _measure("map_p_value", "probability that random selection has at least this map"),
    Column(
        "map_p_value_method",
        "VARCHAR",
        "`lognormal`, `normal` or `monte_carlo`; for one query the method of its p-value; NULL: undefined",
    ),
    UNDEFINED,
    UNDEFINED_P_VALUE,
    _UNDEFINED_INTERVAL,
    QUALITY_COLUMN,
)
CUTOFF_MEANS = (
    Column("k", "BIGINT", "number of first documents"),
    _N_QUERIES,
    _N_EXCLUDED,
    _measure("precision", "mean of precision among the first k over queries"),
    *limits_of_share("precision"),
    _measure("recall", "mean of recall among the first k over queries"),
    *limits_of_share("recall"),
    UNDEFINED,
    _UNDEFINED_INTERVAL,
    QUALITY_COLUMN,
)
MEANS_OF_MEASURES = (
    Column("measure", "VARCHAR", "the measure as the key `measures` names it: `nDCG@10`"),
    Column("n_queries", "BIGINT", "rankings that the mean is over"),
    Column(
        "n_excluded",
        "BIGINT",
        "rankings left out of the mean, having no document that counts as relevant for the measure",
    ),
    _measure("mean", "mean of the measure over queries"),
    *limits_of("mean"),
    UNDEFINED,
    _UNDEFINED_INTERVAL,
    QUALITY_COLUMN,
)
QUERY_TABLE, MEASURE_TABLE = "ranking_queries", "ranking_measures"
TABLES_OF_MEANS = ("ranking_summary", "ranking_cutoff_means", MEASURE_TABLE)
TABLES = (
    Table(QUERY_TABLE, "one row per group and query", QUERIES, ("query_id",)),
    Table("ranking_cutoffs", "one row per group, query and k", CUTOFFS, ("query_id", "k")),
    Table("ranking_summary", "one row per group", SUMMARY, ()),
    Table("ranking_cutoff_means", "one row per group and k", CUTOFF_MEANS, ("k",)),
    Table(MEASURE_TABLE, "one row per group and measure that the config names", MEANS_OF_MEASURES, ("measure",)),
)


_CLUSTER = Column(CLUSTER, "KEY", "the cluster of the query; NULL: never")


def further_columns(params: RankingParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because of the measures and the clusters of the config."""
    clusters = CLUSTER_COLUMNS if params.is_clustered else ()
    of_queries = (*columns_of_measures(params), *((_CLUSTER,) if params.is_clustered else ()))
    return {QUERY_TABLE: of_queries, **dict.fromkeys(TABLES_OF_MEANS, clusters)}


def columns_of_measures(params: RankingParameters) -> tuple[Column, ...]:
    """The columns of measures that the config asks for, in the table of queries."""
    comment = "; NULL: no document of the query counts as relevant for it, or the query is not judged"
    return tuple(
        Column(name, "DOUBLE", f"the measure {name} of the query{comment}", nullable=True) for name in params.measures
    )


class RankingParameters(StageParameters):
    """Parameters of ranking.

    Attributes:
        ranking: Retrieved documents of every query.
        relevance: Judged documents of every query; default: the column `relevance` of the ranking.
        cluster: Column of queries whose values are independent, such as the family of a query; default: the query.
        cutoffs: Numbers of first documents at which precision and recall are measured.
        measures: Further measures by name, as `nDCG@10`, `nDCG(gain=exponential)@10`, `AP@100`, `RBP(p=0.8)`.
        relevance_level: Least relevance of a relevant document.
        ties: Order of documents with equal scores: `trec`: descending by name; `expected`: the mean over all orders;
            `order`: documents come in the order of the column `rank`, whatever the scores.
        interpolation: How many hits interpolated precision at a recall asks for, by version of trec_eval.
        missing_queries: What happens to a query with relevant documents of which none was retrieved in a group.
        no_relevant: Measures of a query without a relevant document: `null`: left out of means; `zero`.
        n_candidates: Documents of the pool that each ranking was made from; default: those ranked.
        null: Moments of average precision under random selection: `exact`; `zhang_su_2012`: as printed there, wrong.
    """

    kind: Literal["ranking"] = "ranking"
    ranking: Input
    relevance: Input | None = None
    thresholds: Thresholds = "distinct"
    cutoffs: tuple[Annotated[int, Field(ge=1, le=10**9)], ...] = (1, 5, 10, 100)
    measures: tuple[str, ...] = ()
    relevance_level: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    ties: Literal["trec", "expected", "order"] = "trec"
    interpolation: Interpolation = "trec_eval_10"
    missing_queries: Literal["error", "zero", "skip"] = "error"
    no_relevant: Literal["null", "zero"] = "null"
    n_candidates: Annotated[int, Field(ge=1, le=10**12)] | None = None
    null: Literal["exact", "zhang_su_2012"] = "exact"

    @field_validator("cutoffs")
    @classmethod
    def _rising(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or list(value) != sorted(set(value)):
            message = "cutoffs must rise, and there must be at least one"
            raise ValueError(message)
        return value

    @field_validator("measures")
    @classmethod
    def _by_name(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(measure_of(text).name for text in value)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            message = f"measures names {twice} twice"
            raise ValueError(message)
        return names

    @property
    def is_clustered(self) -> bool:
        """Whether queries lie in clusters, within which they are not independent."""
        return self.cluster not in {None, "query_id"}

    @property
    def measured(self) -> tuple[str, ...]:
        """Measures that the config asks for by name."""
        return self.measures

    @property
    def ranking_measures(self) -> tuple[RankingMeasure, ...]:
        """The same measures, read."""
        return tuple(measure_of(name) for name in self.measures)

    @model_validator(mode="after")
    def _fits(self) -> RankingParameters:
        if self.thresholds != "distinct":
            message = "a ranking has no thresholds: use cutoffs"
            raise ValueError(message)
        if self.cluster in _NO_GROUPS[1:]:
            message = f"cluster cannot be {self.cluster!r}: documents of one ranking differ in it"
            raise ValueError(message)
        if self.cluster_order is not None and not self.is_clustered:
            message = "cluster_order puts clusters of queries in order: name their column as cluster"
            raise ValueError(message)
        odd = [name for grouping in self.by for name in grouping if name in _NO_GROUPS]
        if odd:
            message = f"by cannot name {odd[0]}: documents of one ranking differ in it, or it is the query"
            raise ValueError(message)
        return self


_NO_GROUPS = ("query_id", "doc_id", "score", "rank", "relevance")
