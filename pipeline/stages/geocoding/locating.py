"""Checks of coordinates that name the file and the row."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...errors import DataError
from ...metrics.geocoding.distance import geodesic, haversine
from ...plan import rows
from ...plan.checks import duplicate_check, file_check, missing_check
from ...plan.nodes import Relation
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...sources.canonical import canonical_relation
from ...tables.columns import doubles
from ..mentions.rows import fault_of, key_type, systems_relation
from ..mentions.rules import DOCUMENT, FILE_ORDER, SYSTEM, in_order, matched_rows, text_numbers
from .contract import GOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...plan.checks import Faults
    from ...plan.nodes import Check
    from ...sources.inputs import Field
    from ...sources.source import Source
    from .contract import GeocodingParameters


PLACE = ("latitude", "longitude")


def coordinate_checks(source: Source, read: Mapping[str, Field]) -> Iterator[Check]:
    """Coordinates that are infinite or off the Earth, and places of which only one coordinate is known.

    Args:
        source: The input.
        read: The columns that are read of it, grouping columns too, by their names in its relation.
    """
    for name in PLACE:
        # elsewhere an infinite value is NULL, as an unknown one is; the columns are those that are read otherwise, too,
        # because files are grouped by what is read of them
        with_state = canonical_relation(source, read, score=name, located=True)
        yield _check("infinite_coordinate", source, {"coordinate": name}, {"input_read": with_state})
    yield _check("latitude", source, {})
    yield _check("longitude", source, {})
    for missing, other in (PLACE, PLACE[::-1]):
        yield _check("half_a_place", source, {"coordinate": missing, "other": other})


def _check(
    name: str, source: Source, columns: Mapping[str, str], relations: Mapping[str, exp.Query] | None = None
) -> Check:
    """A check of sql/geocoding/checks, whose message names the first file and row itself."""

    def words(faults: Faults) -> dict[str, object]:
        fault = faults[0]
        remedy = "Correct these rows, or leave them out with where."
        if source.name != GOLD.name:
            remedy = "Correct these rows, leave them out with where, or make both NULL: not located."
        if fault["n_exchangeable"] == fault["n_rows"]:
            both = " and ".join(repr(source.source_name(coordinate)) for coordinate in PLACE)
            remedy = f"{both} are most likely exchanged: map them with columns = {{ latitude = …, … }}."
        place, row = str(fault["source_file"]), fault["first_row"]
        if source.without_places is None and isinstance(row, int):
            place = f"{place}, first at row {row + 1:,}"
        return {"place": place, "remedy": remedy}

    check = file_check(f"geocoding/checks/{name}", source, columns=columns, relations=relations, words=words)
    return replace(check, problem=None)


# The relation `toponyms` where SQL cannot make it: mentions to be matched, and distances on the ellipsoid.


SPAN = ("start", "end")
SHOWN = (*SPAN, "text")
SEVERAL = 'Keep one, or choose: candidates = "first" (by rank), or "closest" (the best any choice could be).'
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String()}


def by_matching(
    params: GeocodingParameters, systems: Sequence[str], of_gold: Sequence[str], names: Callable[[str], str] = str
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that matches mentions and measures their distance.

    Args:
        params: The rule of matching, and which candidate counts.
        systems: Grouping columns of the predictions.
        of_gold: Grouping columns of the gold mentions; NULL for predictions without a match.
        names: The name that a column of the predictions has in their files, for messages.

    Returns:
        A function of the frames `gold` and `predicted`. Rows of predictions that have the same span and normalised text
        are candidates of one mention. Its rows are gold mentions and predicted mentions without a match. Except for the
        order of file they do not depend on the order of the rows: of mentions that the rule cannot tell apart, gold
        ones come by their id and place on Earth, predictions by rank and place on Earth. It raises a DataError where
        mentions have candidates that are not wanted.
    """

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        gold, candidates = frames["gold"], _numbered(frames["predicted"], params)
        if params.candidates == "error":
            _check_alone(candidates, names)
        if params.assignment == "file_order":
            gold, candidates = gold.sort(FILE_ORDER), candidates.sort(FILE_ORDER)
        else:
            gold = in_order(gold, ("mention_id", *PLACE, "text", "type", *of_gold))
        mentions = candidates.unique("_mention", keep="first", maintain_order=True)
        matched = matched_rows(gold, mentions, params)
        number = pl.Series("_mention", np.append(mentions["_mention"].to_numpy(), -1)[matched])
        left = _gold_rows(gold, [*systems, *of_gold], number)
        ranked = candidates.select("_mention", *_places("predicted"), *_rank(candidates))
        pairs = left.join(ranked, on="_mention", how="left", maintain_order="left_right")
        absent = [name for name in left.columns if name not in {*systems, "replicate", "doc_id", "_mention", *_FLAGS}]
        others = candidates.filter(~pl.col("_mention").is_in(number.unique().implode()))
        spurious = others.select(
            *systems, "replicate", "doc_id", "_mention", *_places("predicted"), *_rank(candidates)
        ).with_columns(
            pl.lit(value=False).alias("is_gold"),
            pl.lit(value=True).alias("is_predicted"),
            *(pl.lit(None, dtype=left.schema[name]).alias(name) for name in absent),
        )
        rows = pl.concat([pairs, spurious.select(pairs.columns)])
        return chosen(measured(rows, params), params, ["_gold", "_mention"]).drop("_gold", "_mention")

    return match


_FLAGS = ("is_gold", "is_predicted")


def _numbered(predicted: pl.DataFrame, params: GeocodingParameters) -> pl.DataFrame:
    """Candidates in an order that does not depend on that of the rows, with the number of their mention."""
    keys = [name for name in (DOCUMENT, SYSTEM, *SPAN) if name in predicted.columns]
    if "text" in params.needs():  # the number of the text, until that of the mention takes its place
        predicted = predicted.with_columns(text_numbers(predicted["text"]).alias("_mention"))
        keys.append("_mention")
    keys += ["type"] if params.match_type else []
    ordered = in_order(predicted, (*keys, "rank", *PLACE))
    if not set(SPAN) <= set(keys):
        return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("_mention"))
    # rows that differ from the one before start a mention; those whose span is not known are mentions of their own
    unknown = [pl.col(name).is_null() for name in SPAN]
    starts = pl.any_horizontal(*(pl.col(name).ne_missing(pl.col(name).shift()) for name in keys), *unknown)
    return ordered.with_columns((starts.cast(pl.Int64).cum_sum() - 1).alias("_mention"))


def _check_alone(candidates: pl.DataFrame, names: Callable[[str], str]) -> None:
    """Refuse mentions with several candidates; rows that repeat to the letter have been refused before."""
    again = candidates.filter(pl.col("_mention") == pl.col("_mention").shift(-1)).head(1)
    if again.is_empty():
        return
    alike = candidates.filter(_mention=again["_mention"].item())
    doc_id, start, end = (f"{names(name)} = {again[name].item()}" for name in ("doc_id", *SPAN))
    texts = ", ".join(repr(text) for text in alike["text"].unique().sort().to_list())
    message = (
        f"input predicted: {doc_id}, {start}, {end} has {alike.height} rows with the same normalised text: {texts}"
    )
    raise DataError(message, remedy=SEVERAL)


def _places(side: str) -> list[pl.Expr]:
    return [pl.col(name).alias(f"{side}_{name}") for name in PLACE]


def _rank(frame: pl.DataFrame) -> list[pl.Expr]:
    return [pl.col("rank") if "rank" in frame.columns else pl.lit(None, dtype=pl.Float64).alias("rank")]


def _gold_rows(gold: pl.DataFrame, groups: Sequence[str], number: pl.Series) -> pl.DataFrame:
    """Gold mentions with the number of the predicted mention that each is matched with; -1: none."""
    shown = [pl.col(name) if name in gold.columns else pl.lit(None, dtype=_TYPES[name]).alias(name) for name in SHOWN]
    mention_id = pl.col("mention_id") if "mention_id" in gold.columns else pl.lit(None, dtype=pl.String)
    return gold.select(
        *groups,
        "replicate",
        mention_id.alias("mention_id"),
        "doc_id",
        *(value.name.prefix("gold_") for value in shown),
        *_places("gold"),
    ).with_columns(
        number,
        pl.int_range(pl.len(), dtype=pl.Int64).alias("_gold"),
        pl.lit(value=True).alias("is_gold"),
        (number >= 0).alias("is_predicted"),
    )


def of_pairs(
    params: GeocodingParameters, systems: Sequence[str]
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function that measures the distance of pairs that are aligned already: a function of the frame `pairs`."""

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return chosen(measured(frames["pairs"], params), params, ["mention_id", *systems])

    return match


def measured(rows: pl.DataFrame, params: GeocodingParameters) -> pl.DataFrame:
    """Rows with `distance_km`, NULL where a place is missing, and `is_located`."""
    places = [rows[f"{side}_{name}"].cast(pl.Float64).to_numpy() for side in _SIDES for name in PLACE]
    distance = (geodesic if params.distance == "geodesic" else haversine)(*places)
    located = pl.col("predicted_latitude").is_not_null().alias("is_located")
    return rows.with_columns(doubles("distance_km", distance), located)


_SIDES = ("gold", "predicted")


def chosen(rows: pl.DataFrame, params: GeocodingParameters, keys: Sequence[str]) -> pl.DataFrame:
    """One candidate for each mention; ties go to the lower latitude and longitude."""
    if params.candidates == "error":
        return rows
    first = "rank" if params.candidates == "first" else "distance_km"
    order = rows.sort(first, *(f"predicted_{name}" for name in PLACE), nulls_last=True)
    return order.unique(keys, keep="first", maintain_order=True)


# Gold and predicted places aligned by the id of the mention, in SQL.


GOLD_PLACES = "gold_places"
CANDIDATES = "candidates"
KEY = "mention_id"
SHOWN_ALIGNED = {
    "doc_id": "VARCHAR",
    "start": "BIGINT",
    "end": "BIGINT",
    "text": "VARCHAR",
}  # types where gold lacks them


@dataclass(frozen=True)
class AlignedPlaces:
    """Places of the same mention, side by side.

    Attributes:
        params: Parameters of the stage.
        predicted: Predicted places.
        gold: Gold places.
        by: The grouping columns.
        name: Relation of the pairs, if SQL makes them ready.
        chosen: Whether the distance is computed and one candidate chosen in SQL.
    """

    params: GeocodingParameters
    predicted: Source
    gold: Source
    by: tuple[rows.Grouped, ...]
    name: str
    chosen: bool

    @property
    def systems(self) -> tuple[str, ...]:
        """Grouping columns of the predictions."""
        return tuple(grouped.name for grouped in self.by if grouped.source == "predicted")

    @property
    def of_gold(self) -> tuple[str, ...]:
        """Grouping columns of gold."""
        return tuple(grouped.name for grouped in self.by if grouped.source == "gold")

    @property
    def cluster(self) -> str:
        """The column of gold whose values are independent."""
        return self.params.cluster_column or ("doc_id" if self.gold.has("doc_id") else KEY)

    @cached_property
    def order(self) -> str | None:
        """The column of gold that orders the clusters in time, as it is read; None: their order means nothing."""
        if self.params.first_cluster is None or not self.params.is_replicated:
            return None
        return rows.order_of_clusters(self.gold, self.params.first_cluster, self.params.cluster_order)

    def taken(self, source: Source) -> tuple[str, ...]:
        """Columns that are read of gold or of predicted places."""
        if source is self.predicted:
            return (KEY, *PLACE, *(["rank"] if source.can_show("rank") else []))
        shown = (name for name in SHOWN_ALIGNED if self.gold.can_show(name))
        return tuple(dict.fromkeys((KEY, *PLACE, *shown, self.cluster, *([] if self.order is None else [self.order]))))

    def relations(self) -> Iterator[Relation]:
        """Places as they are read, gold places with their replicate, candidates, and pairs."""
        fault: dict[str, exp.Expr] = {"fault": fault_of((KEY,), has_score=False)}
        for source, derived in ((self.predicted, fault | self._no_rank()), (self.gold, self._not_shown())):
            yield rows.read(source, self.taken(source), self.by, derived, located=True)
        units = rows.Units(
            GOLD_PLACES,
            KEY,
            fields=tuple(dict.fromkeys((*PLACE, *SHOWN_ALIGNED, *([] if self.cluster == KEY else [self.cluster])))),
            cluster=self.cluster,
            order=self.order,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )
        yield from rows.units_relations(self.predicted, units, self.gold, self.by)
        yield systems_relation(self.systems)
        yield from self._candidates()
        if self.chosen:
            yield Relation(self.name, self.pairs(), keep=True)

    def _no_rank(self) -> dict[str, exp.Expr]:
        return {} if self.predicted.can_show("rank") else {"rank": exp.cast(exp.null(), "DOUBLE")}

    def _not_shown(self) -> dict[str, exp.Expr]:
        """The columns of gold that are shown and that it lacks: NULL."""
        columns = self.taken(self.gold)
        return {name: exp.cast(exp.null(), sql_type) for name, sql_type in SHOWN_ALIGNED.items() if name not in columns}

    def _candidates(self) -> Iterator[Relation]:
        """Predicted rows with their distance from the gold place, one for each mention if they are chosen here."""
        name = "candidates" if self.chosen else "unmeasured_candidates"
        candidates = statement(f"geocoding/{name}", self.systems)
        if not self.chosen or self.params.candidates == "error":
            yield Relation(CANDIDATES, candidates)
            return
        yield Relation("every_candidate", candidates)
        candidates_of_all = {"candidates": "every_candidate"}
        preference = {"preference": "rank" if self.params.candidates == "first" else "distance_km"}
        query = "geocoding/chosen_candidates"
        yield Relation(CANDIDATES, statement(query, self.systems, relations=candidates_of_all, columns=preference))

    def pairs(self) -> exp.Query:
        """Every gold place, once for each system, with its candidates, and candidates of mentions that gold lacks."""
        segment = {"s": self.systems, "c": self.systems, "g": self.of_gold}
        columns = {"unaligned_id": self._unaligned_id(), "unit_key": self.cluster}
        return statement("geocoding/toponyms", segment, columns=columns)

    def _unaligned_id(self) -> str | exp.Expr:
        """The key of predictions with the type that it has in gold."""
        in_gold, in_predicted = (key_type(source, KEY) for source in (self.gold, self.predicted))
        return KEY if in_gold == in_predicted else exp.cast(column(KEY, "c"), in_gold, dialect="duckdb")

    def checks(self) -> Iterator[Check]:
        """Gold mentions that repeat or whose cluster is missing, and mentions with several predictions."""
        yield missing_check(self.gold, KEY)
        if self.cluster != KEY:
            yield missing_check(self.gold, self.cluster)
        if self.order not in {None, self.cluster}:
            yield missing_check(self.gold, str(self.order))
        yield duplicate_check(self.gold, (KEY,), remedy="Keep one row per gold mention.")
        if self.params.candidates == "error":
            yield duplicate_check(self.predicted, (KEY, *self.systems), remedy=SEVERAL, of_systems=True)
