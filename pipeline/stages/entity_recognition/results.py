"""What follows from the counts of entity_recognition: scores, counts per document, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.curves.operating_points import operating_points
from ...metrics.matching.document_averages import POOLED_AVERAGES
from ...metrics.uncertainty.limits import clusters_of, marked, warnings_of_marks, with_numbers, with_quality
from ...tables.columns import IN_TIME, RATIOS, REPLICATE, THRESHOLD, add_up, as_key, by_group
from ...tables.groupings import group_text, grouping_columns
from ...tables.schemas import GROUPING, polars_types
from ...visible_text import of_every
from ..mentions.rules import DOCUMENT
from ..stage import Summary, f1_curve, groups_without, integer, interval, number, of_group
from ..standard_figures import CHOICE, OTHER_DATA, SAME_DATA, beside_best, on_other_data, words_of_choice
from .averages import are_alike_in_time, average_of
from .choosing import candidates, f_beta, outcomes
from .contract import CHOSEN, COUNT_NAMES, SCORES
from .documents import TABLE as SUMS_OF_DOCUMENTS
from .documents import TYPES as TYPES_OF_SUMS
from .documents import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .contract import EntityRecognitionParameters
    from .documents import Group

DOC_ID = "doc_id"
_ONE, _POOLED = "_one", "_pooled"


def derive(params: EntityRecognitionParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of entity_recognition; single mentions are added by a follow-up, if they are wanted."""
    keys = [name for name in counts["counts"].columns if name not in {THRESHOLD, REPLICATE, *COUNT_NAMES}]
    documents = _of_groupings(params, counts["documents"], counts.get("lowest"), keys)
    ids = counts["document_ids"]
    sums, in_time = counts.get(SUMS_OF_DOCUMENTS), IN_TIME in counts
    groups = list(_groups(params, counts["counts"], sums, documents, keys, in_time=in_time))
    clusters = _clusters(groups, counts["counts"], documents, keys)
    scores = _scores(params, groups, clusters, documents, keys)
    return {
        "entity_recognition_scores": scores,
        "entity_recognition_operating_points": _operating_points(params, groups, clusters, scores, keys),
        "entity_recognition_documents": _documents(documents, ids, keys),
    }


def _of_groupings(
    params: EntityRecognitionParameters, documents: pl.DataFrame, lowest: pl.DataFrame | None, keys: Sequence[str]
) -> pl.DataFrame:
    """Counts of documents of every grouping, in the order of documents, from those by all grouping columns.

    Args:
        params: The parameters.
        documents: Counts by all grouping columns.
        lowest: Those of the predictions with the lowest score of each of these groups, which do not count in a grouping
            where it is the lowest, too; None: all count.
        keys: Columns that identify a group.
    """
    frames = []
    for grouping in params.groupings:
        columns = grouping.columns
        frame = documents if lowest is None else pl.concat([documents, _not_retrieved(lowest, columns)], how="diagonal")
        if lowest is not None or set(columns) != set(keys[1:]):
            frame = add_up(frame, [*columns, REPLICATE, DOCUMENT], COUNT_NAMES)
        if params.type_group in columns:  # documents are listed without a type; they count where types are one
            frame = frame.filter(pl.col(params.type_group).is_not_null() | (pl.sum_horizontal(COUNT_NAMES) > 0))
        frames.append(frame.with_columns(pl.lit(grouping.label).alias(GROUPING.name)))
    names = [*keys, REPLICATE, DOCUMENT, *COUNT_NAMES]
    return pl.concat([documents.clear(), *frames], how="diagonal").select(names).sort(DOCUMENT)


def _not_retrieved(lowest: pl.DataFrame, grouping: Sequence[str]) -> pl.DataFrame:
    """Minus the counts of predictions with the lowest score of a group, by all grouping columns."""
    of_group = pl.col("lowest").min()
    least = lowest.filter(pl.col("lowest") == (of_group.over(grouping) if grouping else of_group))
    return least.with_columns(-pl.col("tp", "fp"), pl.lit(0, dtype=pl.Int64).alias("n_gold")).drop("lowest")


def _groups(
    params: EntityRecognitionParameters,
    counts: pl.DataFrame,
    sums: pl.DataFrame | None,
    documents: pl.DataFrame,
    keys: Sequence[str],
    *,
    in_time: bool,
) -> Iterator[tuple[pl.DataFrame, Group]]:
    """The counts of every group, with its keys as a frame of one row."""
    of_counts = by_group(counts, keys)
    of_sums = None if sums is None else by_group(sums, keys)
    number = documents.group_by(keys).agg(pl.len().cast(pl.Int64), pl.col(REPLICATE).unique())
    of_documents = by_group(number, keys)
    for key in dict.fromkeys((*of_documents, *of_counts)):
        counted, in_group = of_counts.get(key, counts.clear()), of_documents.get(key, number.clear())
        changes = None if of_sums is None else of_sums.get(key, pl.DataFrame(schema=TYPES_OF_SUMS))
        replicates = in_group[REPLICATE].explode().drop_nulls().to_numpy()
        n_documents = int(in_group["len"].sum())
        label = (counted if counted.height else in_group).head(1).select(keys)
        thresholds = params.threshold_values
        yield label, group_of(counted, changes, replicates, n_documents, thresholds, params.boundary, in_time=in_time)


def _scores(
    params: EntityRecognitionParameters,
    groups: Sequence[tuple[pl.DataFrame, Group]],
    clusters: pl.DataFrame,
    documents: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """Every average at every threshold of every group."""
    confidence = None if params.uncertainty == "none" else params.confidence
    frames = [
        _labelled(label, average_of(group, kind, confidence, params.resampling))
        for label, group in groups
        for kind in params.averages
    ]
    if not frames:
        return _nothing(documents, keys)
    rows = _with_clusters(pl.concat(frames), clusters, keys, confidence)
    return rows.select(*keys, *(column.name for column in SCORES))


def _clusters(
    groups: Sequence[tuple[pl.DataFrame, Group]], counts: pl.DataFrame, documents: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """How many clusters the intervals of a group rest on, and how far these can be trusted.

    Where mentions are pooled the size of a cluster is their number, in means over documents that of its documents.
    """
    of_documents = clusters_of(documents.with_columns(pl.lit(1).alias(_ONE)), keys, [_ONE])
    alike = [are_alike_in_time(group) for _, group in groups]
    frames = []
    for pooled, clusters in enumerate((of_documents, clusters_of(counts, keys, COUNT_NAMES))):
        labels = [label for (label, _), is_alike in zip(groups, alike, strict=True) if is_alike[1 - pooled]]
        is_marked = marked(clusters, "correlated_days", pl.concat(labels)) if labels else clusters
        frames.append(is_marked.with_columns(pl.lit(bool(pooled)).alias(_POOLED)))
    return pl.concat(frames)


def _with_clusters(
    rows: pl.DataFrame, clusters: pl.DataFrame, keys: Sequence[str], confidence: float | None
) -> pl.DataFrame:
    """All rows in their order, with how far to trust their intervals and how many clusters these rest on."""
    rows, by = rows.with_columns(pl.col("average").is_in(POOLED_AVERAGES).alias(_POOLED)), [*keys, _POOLED]
    rows = with_quality(rows, RATIOS, clusters=clusters, keys=by, events=("tp", "fp", "fn"))
    return with_numbers(rows, clusters, by, wanted=confidence is not None).drop(_POOLED)


def _labelled(label: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([label[[0] * frame.height], frame], how="horizontal")


def _operating_points(
    params: EntityRecognitionParameters,
    groups: Sequence[tuple[pl.DataFrame, Group]],
    clusters: pl.DataFrame,
    scores: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """The thresholds that criteria choose by the counts of all mentions, in every group that has scores."""
    confidence = None if params.uncertainty == "none" else params.confidence
    names = [*keys, *(column.name for column in CHOSEN)]
    choices = []
    for label, group in groups:
        if not np.isnan(group.thresholds).all():
            micro = _labelled(label, average_of(group, "micro", confidence, params.resampling))
            of_group = clusters.join(label, on=keys, how="semi", nulls_equal=True)
            rows = _with_clusters(micro, of_group, keys, confidence)
            choices.append(candidates(rows.select(names), group, confidence, params.resampling))
    curve = pl.concat([each.rows for each in choices]) if choices else scores.select(names).clear()
    return operating_points(curve, keys, params.operating_points, choices, f_beta, outcomes(), params.boundary)


def _nothing(documents: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    of_table = {column.name: polars_types(column.type)[0] for column in SCORES}
    return pl.DataFrame(schema={name: documents.schema[name] for name in keys} | of_table)


def _documents(documents: pl.DataFrame, ids: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Counts of every document at the lowest threshold, with its cluster, if there are any; numbered from 1."""
    name, *clusters = (as_key(column.gather(documents[DOCUMENT] - 1)) for column in ids)
    return documents.select(*keys, name, "tp", "fp", (pl.col("n_gold") - pl.col("tp")).alias("fn"), *clusters)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    scores = tables["entity_recognition_scores"]
    lowest = scores.sort("average", THRESHOLD, nulls_last=False)
    keys = scores.columns[1 : scores.columns.index("average")]
    groups = lowest.unique(keys, keep="first", maintain_order=True)
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    messages = groups_without(groups, {"no gold mention": tp + fn == 0, "no prediction": tp + fp == 0})
    return (*messages, *warnings_of_marks(tables))


def best_rows(scores: pl.DataFrame) -> pl.DataFrame:
    """Every average of every group at the threshold with its best F1, the total first."""
    keys = [GROUPING.name, *grouping_columns(scores.columns), "average"]
    best = scores.sort(pl.col("f1").fill_null(-1.0), descending=True, maintain_order=True)
    best = best.unique(keys, keep="first", maintain_order=True)
    best = scores.select(keys).unique(maintain_order=True).join(best, on=keys, how="left", nulls_equal=True)
    return best.sort(pl.col(GROUPING.name) != "all", maintain_order=True)


def best_on_other_data(tables: Mapping[str, pl.DataFrame], scores: pl.DataFrame) -> pl.DataFrame:
    """`best_rows` of some averages, those of all mentions with what their choice gives on other data."""
    best, points = best_rows(scores), tables["entity_recognition_operating_points"]
    is_micro = pl.col("average") == "micro"
    beside = beside_best(best, points)
    fitted = [name for name in beside.columns if name not in best.columns]
    return on_other_data(beside.with_columns(pl.when(is_micro).then(name).alias(name) for name in fitted))


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """Each average of every group at its best threshold, and F1 over the thresholds of the first."""
    scores = tables["entity_recognition_scores"]
    if scores.is_empty():
        return Summary(headers=(), rows=(), sentence="There is no document.")
    best = best_on_other_data(tables, scores)
    keys = best.columns[: best.columns.index("average") + 1]
    rows = tuple(
        (
            group_text(row),
            row["average"],
            number(row[THRESHOLD]),
            *(integer(row[name]) for name in ("tp", "fp", "fn")),
            *(interval(row, name) for name in RATIOS),
        )
        for row in best.iter_rows(named=True)
    )
    values, title = f1_curve(scores, best.head(1).select(keys))
    return Summary(
        headers=HEADERS,
        rows=rows,
        groupings=tuple(best[GROUPING.name]),
        sentence=of_group(best.row(0, named=True), _sentence(best.row(0, named=True))),
        curve=values,
        curve_title=title,
        on_same_data=bool((best[CHOICE] == SAME_DATA).any()),
    )


HEADERS = ("group", "average", "threshold", "tp", "fp", "fn", "precision", "recall", "F1")


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if row[CHOICE] == OTHER_DATA and isinstance(precision, float) and isinstance(recall, float):
        return (
            f"With scores of {number(row[THRESHOLD])} or more, {of_every(recall)} gold mentions are found, and "
            f"{of_every(precision)} predictions are right{words_of_choice(row)}."
        )
    tp, fp, fn = (row[name] for name in ("tp", "fp", "fn"))
    if not (isinstance(tp, int) and isinstance(fp, int) and isinstance(fn, int)):
        return "Nothing was counted."
    wrong = "1 prediction is wrong" if fp == 1 else f"{fp:,} predictions are wrong"
    found = f"{tp:,} of {tp + fn:,} gold mentions are found, and {wrong}"
    return f"{found}{words_of_choice(row)}."
