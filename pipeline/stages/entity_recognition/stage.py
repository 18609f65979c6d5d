"""The stage entity_recognition: from counts to scores, and what people look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ...base.columns import (
    F1,
    IN_TIME,
    PRECISION,
    RATIOS,
    RECALL,
    REPLICATE,
    THRESHOLD,
    add_up,
    as_key,
    by_group,
    ratio_of,
    ratios,
    scales,
)
from ...base.schemas import GROUPING, grouping_columns, polars_types
from ...base.visible_text import listed, of_every
from ...metrics.curves.operating_points import (
    Candidates,
    Outcomes,
    f_beta_of_counts,
    operating_points,
    ratios_of_counts,
)
from ...metrics.matching import POOLED_AVERAGES
from ...metrics.uncertainty.limits import clusters_of, marked, warnings_of_marks, with_numbers, with_quality
from ...metrics.uncertainty.proportions import intervals_of_clusters
from .. import sections
from ..figures import (
    CHOICE,
    OTHER_DATA,
    SAME_DATA,
    Axis,
    Figure,
    Wanted,
    beside_best,
    by_threshold,
    caption,
    drawn,
    histogram_of_shares,
    intervals,
    key_numbers_of,
    keys_of,
    of_best,
    on_other_data,
    precision_recall,
    ratio_series,
    ratios_of_groups,
    rising,
    shares,
    shown,
    words_of_choice,
)
from ..mentions import DOCUMENT, rule_in_words
from ..sections import EXPLAINED_ROWS, Convention, Evidence, Measure, Profile, Section
from ..stage import (
    WITHOUT,
    Counted,
    SampleSizes,
    Stage,
    Summary,
    UnitTable,
    by_influence,
    f1_curve,
    groups_without,
    integer,
    interval_cells,
    nouns_of,
    number,
    summary_of,
    untold,
    with_influence,
)
from ..stated import at_folds, f_beta_of_row, outcomes_of_row
from .contract import (
    CHOSEN,
    COUNT_NAMES,
    COUNTS,
    DOCUMENTS,
    GOLD,
    JUDGED,
    PREDICTED,
    SCORES,
    TABLES,
    WEIGHTS,
    EntityRecognitionParameters,
    further_columns,
)
from .documents import TABLE as SUMS_OF_DOCUMENTS
from .documents import TYPES as TYPES_OF_SUMS
from .documents import JudgedScores, are_alike_in_time, average_of, group_of, weighted_confusion, with_estimates
from .planning import plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.curves.decisions import Ints
    from ...metrics.few_labels.draws import EstimatedScores
    from ...metrics.matching import Average
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from ...metrics.uncertainty.proportions import Confusion
    from ...metrics.uncertainty.replicates import Resampling
    from ..figures import KeyNumber
    from ..sections import Asked, Measured
    from .documents import Group

    _Groups: TypeAlias = Sequence[tuple[pl.DataFrame, Group, EstimatedScores | None]]  # with their keys in one row


def candidates(
    rows: pl.DataFrame, group: Group, counts: Confusion, confidence: float | None, resampling: Resampling | None
) -> Candidates:
    """What the criteria choose from in one group: the counts of all its mentions.

    Rows are its scores by rising threshold, counts its outcomes by replicate and threshold; without a confidence
    uncertainty is not asked for, and replicates are not counted.
    """
    wanted = confidence is not None
    is_possible = wanted and group.counts.within_budget()

    def lower(name: str, confidence: float) -> Floats:
        return intervals_of_clusters(counts, confidence, names=[name])[name][0]

    def limits(chosen: Ints, _pooled: Sequence[Floats]) -> dict[str, Limits]:
        at_chosen = at_folds(counts, chosen)
        return intervals_of_clusters(at_chosen, confidence or 0.0, names=RATIOS, resampling=resampling)

    return Candidates(
        rows=rows,
        lower=lower if is_possible else None,
        retrieved=(counts.tp + counts.fp).sum(axis=0).astype(np.float64),
        counts=(counts.tp, counts.fp, counts.fn) if wanted else "none",
        ratios=ratios_of_counts,
        f_beta=f_beta_of_counts,
        outcomes=lambda counts: Outcomes(*counts),
        at_folds=limits if is_possible else None,
    )


# What follows from the counts of entity_recognition: scores, counts per document, and words.


_ONE, _POOLED = "_one", "_pooled"


def derive(params: EntityRecognitionParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of entity_recognition; single mentions are added by a follow-up, if they are wanted."""
    keys = [name for name in counts["counts"].columns if name not in {THRESHOLD, REPLICATE, *COUNT_NAMES}]
    documents = _of_groupings(params, counts["documents"], counts.get("lowest"), keys)
    ids = counts["document_ids"]
    sums, in_time = counts.get(SUMS_OF_DOCUMENTS), IN_TIME in counts
    judged = None if params.judged is None else JudgedScores.of(params, counts)
    groups = [
        (label, group, None if judged is None else judged.scores(label, group.thresholds))
        for label, group in _groups(params, counts["counts"], sums, documents, keys, in_time=in_time)
    ]
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

    Predictions with the lowest score of a group do not count, if there are any `lowest`, where it is the lowest of the
    grouping, too.
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
    groups: _Groups,
    clusters: pl.DataFrame,
    documents: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """Every average at every threshold of every group."""
    confidence = None if params.uncertainty == "none" else params.confidence
    frames = [
        _labelled(label, _average(group, kind, params, estimated))
        for label, group, estimated in groups
        for kind in params.averages
    ]
    weights = WEIGHTS if params.judged is not None else ()
    if not frames:
        types = {column.name: polars_types(column.type)[0] for column in (*SCORES, *weights)}
        return pl.DataFrame(schema={name: documents.schema[name] for name in keys} | types)
    rows = _with_clusters(pl.concat(frames), clusters, keys, confidence)
    return rows.select(*keys, *(column.name for column in (*SCORES, *weights)))


def _average(
    group: Group, kind: Average, params: EntityRecognitionParameters, estimated: EstimatedScores | None
) -> pl.DataFrame:
    """An average of a group, for all documents where only some were judged."""
    confidence = None if params.uncertainty == "none" else params.confidence
    if estimated is None:
        return average_of(group, kind, confidence, params.resampling)
    return with_estimates(average_of(group, kind, None), kind, estimated, wanted=confidence is not None)


def _clusters(groups: _Groups, counts: pl.DataFrame, documents: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """How many clusters the intervals of a group rest on, and how far these can be trusted.

    Where mentions are pooled the size of a cluster is their number, in means over documents that of its documents.
    """
    of_documents = clusters_of(documents.with_columns(pl.lit(1).alias(_ONE)), keys, [_ONE])
    alike = [are_alike_in_time(group) for _, group, _ in groups]
    frames = []
    for pooled, clusters in enumerate((of_documents, clusters_of(counts, keys, COUNT_NAMES))):
        labels = [label for (label, *_), is_alike in zip(groups, alike, strict=True) if is_alike[1 - pooled]]
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
    groups: _Groups,
    clusters: pl.DataFrame,
    scores: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """The thresholds that criteria choose by the counts of all mentions, in every group that has scores."""
    confidence = None if params.uncertainty == "none" else params.confidence
    weights = WEIGHTS if params.judged is not None else ()
    names = [*keys, *(column.name for column in (*CHOSEN, *weights))]
    choices = []
    for label, group, estimated in groups:
        if not np.isnan(group.thresholds).all():
            micro = _labelled(label, _average(group, "micro", params, estimated))
            of_group = clusters.join(label, on=keys, how="semi", nulls_equal=True)
            rows = _with_clusters(micro, of_group, keys, confidence)
            counts = group.confusion if estimated is None else weighted_confusion(estimated)
            choices.append(candidates(rows.select(names), group, counts, confidence, params.resampling))
    curve = pl.concat([each.rows for each in choices]) if choices else scores.select(names).clear()
    return operating_points(
        curve, keys, params.operating_points, choices, f_beta_of_row, outcomes_of_row(), params.boundary
    )


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
    conditions = {"no gold mention": tp + fn == 0, "no prediction": tp + fp == 0}
    return (*groups_without(groups, conditions), *warnings_of_marks(tables))


def best_rows(scores: pl.DataFrame) -> pl.DataFrame:
    """Every average of every group at the threshold with its best F1, the total first."""
    keys = [GROUPING.name, *grouping_columns(scores.columns), "average"]
    best = scores.sort(pl.col("f1").fill_null(-1.0), descending=True, maintain_order=True)
    best = best.unique(keys, keep="first", maintain_order=True)
    best = scores.select(keys).unique(maintain_order=True).join(best, on=keys, how="left", nulls_equal=True)
    return best.sort(pl.col(GROUPING.name) != "all", maintain_order=True)


def best_on_other_data(tables: Mapping[str, pl.DataFrame], scores: pl.DataFrame) -> pl.DataFrame:
    """`best_rows` of some averages; for averages of all mentions, with the result of their choice on other data."""
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
    return summary_of(
        best,
        {
            "average": lambda row: row["average"],
            "threshold": lambda row: number(row[THRESHOLD]),
            "tp": lambda row: integer(row["tp"]),
            "fp": lambda row: integer(row["fp"]),
            "fn": lambda row: integer(row["fn"]),
            **interval_cells({"precision": "precision", "recall": "recall", "F1": "f1"}),
        },
        _sentence,
        f1_curve(scores, best.head(1).select(keys)),
        on_same_data=bool((best[CHOICE] == SAME_DATA).any()),
    )


def _sentence(row: Mapping[str, object]) -> str:
    precision, recall = row["precision"], row["recall"]
    if row[CHOICE] == OTHER_DATA and isinstance(precision, float) and isinstance(recall, float):
        return (
            f"With scores of {number(row[THRESHOLD])} or more, {of_every(recall)} gold mentions are found, and "
            f"{of_every(precision)} predictions are right{words_of_choice(row)}."
        )
    if row.get("tp_weight") is not None and isinstance(precision, float) and isinstance(recall, float):
        return (
            f"In all documents about {of_every(recall)} gold mentions are found, and about {of_every(precision)} "
            f"predictions are right{words_of_choice(row)}."
        )
    tp, fp, fn = (row[name] for name in ("tp", "fp", "fn"))
    if not (isinstance(tp, int) and isinstance(fp, int) and isinstance(fn, int)):
        return "Nothing was counted."
    wrong = "1 prediction is wrong" if fp == 1 else f"{fp:,} predictions are wrong"
    found = f"{tp:,} of {tp + fn:,} gold mentions are found, and {wrong}"
    return f"{found}{words_of_choice(row)}."


# What there is to look at of entity_recognition: averages, curves by confidence, and spread over documents.


NUMBERS = (
    Wanted("precision", "Precision", "predicted mentions that are right", "precision"),
    Wanted("recall", "Recall", "gold mentions that are found", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)
CURVES = ("micro", "macro", "semeval_micro", "semeval")  # the average of the curves: the first that there is


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by confidence where there are scores, averages at their best threshold, F1 over documents."""
    scores = tables["entity_recognition_scores"]
    if scores.is_empty():
        return
    average = headline_average(scores)
    curve = scores.filter(pl.col("average") == average)
    points = tables["entity_recognition_operating_points"] if average == "micro" else None
    if curve[THRESHOLD].n_unique() > 1:
        words = f"The ratios ({average} average) if every prediction that scores at least the threshold counts."
        x_title = "Threshold: confidence from which a prediction counts"
        by_confidence = rising(curve)
        yield by_threshold(by_confidence, points, confidence, what=words, x_title=x_title)
        yield precision_recall(by_confidence, points)
    best = of_best(best_rows(curve))
    yield ratios_of_groups(best, "tp", confidence, f"({average} average) at its best threshold")
    yield _averages(scores, confidence)
    documents = tables.get("entity_recognition_documents")
    if documents is not None:
        yield _f1_of_documents(documents)


def headline_average(scores: pl.DataFrame) -> str:
    """Return the average that stands for all: `micro` if there is one."""
    present = set(scores["average"])
    return next(average for average in CURVES if average in present)


def _averages(scores: pl.DataFrame, confidence: float) -> Figure:
    best = of_best(best_rows(scores)).sort(*keys_of(scores), "average")
    series = ratio_series(best, "point")
    words = (
        "Every average at the threshold with its best F1: micro of all mentions together, macro the mean over "
        "documents, semeval by the conventions of that task."
    )
    return Figure(
        name="averages",
        title="Precision, recall and F1 by average",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(best, "average", series),
        x=Axis("average", "Average", "category"),
        y=shares("Precision, recall, F1"),
        series=series,
    )


def _f1_of_documents(documents: pl.DataFrame) -> Figure:
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    return histogram_of_shares(
        documents.with_columns(ratio_of(F1, {"tp": tp, "fp": fp, "fn": fn})),
        "f1",
        name="f1_of_documents",
        title="F1 of the documents",
        what="F1 of a document, all its predictions counted",
        unit="documents",
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the threshold with the best F1, the micro average if there is one."""
    scores = tables["entity_recognition_scores"]
    if scores.is_empty():
        return ()
    of_average = scores.filter(pl.col("average") == headline_average(scores))
    return key_numbers_of(best_on_other_data(tables, of_average), NUMBERS)


# What a methods section says of entity_recognition.


NOUNS = {"predicted": "predicted mentions", "gold": "gold mentions"}
AVERAGES = {
    "micro": "of the summed counts",
    "macro": "as means of the documents' ratios where these are defined",
    "semeval": "as in SemEval-2019 Task 12 (Weissenbacher et al. 2019)",
    "semeval_micro": "as the micro scores of SemEval-2019 Task 12 (Weissenbacher et al. 2019)",
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how recognised mentions were matched with gold mentions, and what came out."""
    scores, parameters = measured.tables["entity_recognition_scores"], measured.parameters
    yield (
        f"{measured.used('predicted'):,} predicted mentions were compared with {measured.used('gold'):,} gold mentions "
        f"in {measured.most(scores['n_documents'])} documents, by matching {rule_in_words(parameters)}."
    )
    yield sections.left_out(measured, NOUNS)
    if measured.facts["scores"] == "yes":
        yield sections.scored_predictions(measured)
        yield sections.invalid_scores(measured, "Predictions")
        yield sections.criteria(measured)
    yield f"Precision, recall and F1 are given {listed(AVERAGES[name] for name in parameters['averages'])}."
    if parameters["judged"] is not None:
        n_judged, n_listed = (measured.accounts["documents"].get(name, 0) for name in ("used", "rows_in"))
        yield (
            f"Mentions were judged in a sample of {n_judged:,} of {n_listed:,} documents, drawn by strata; precision, "
            "recall and F1 are estimates for all of them, with limits from draws of the Bayesian bootstrap that know "
            "the strata (Rubin 1981; Ghosh and Meeden 1997)."
        )
        yield from _results(measured)
        return
    units = sections.units_in_words(measured, {"doc_id": "documents"})
    yield sections.intervals(
        measured,
        units,
        f"are those of proportions whose counts are divided by the design effect, by the jackknife over {units}",
    )
    yield from _results(measured)


def _results(measured: Measured) -> Iterator[str]:
    """The chosen point of all mentions, or without scores the first average."""
    points, scores = (measured.tables[f"entity_recognition_{name}"] for name in ("operating_points", "scores"))
    rows = on_other_data(sections.of_first_criterion(points))
    if rows.is_empty():
        rows = scores.filter(pl.col("average") == measured.parameters["averages"][0], pl.col("threshold").is_null())
    yield from sections.results(rows, sections.RATIO_NAMES, measured.confidence, sections.CHOSEN)


_GOLD, _PREDICTED = "gold mentions", "predicted mentions"
_COUNTS = (
    Counted(_GOLD, ("tp", "fn")),
    Counted(_PREDICTED, ("tp", "fp")),
    Counted("gold or predicted mentions", ("tp", "fp", "fn"), is_listed=False),
)
SAMPLE_SIZES = SampleSizes(
    nouns={"doc_id": "documents"},
    units={"doc_id": "n_documents"},
    counts=_COUNTS,
    rests_on=nouns_of((PRECISION, RECALL, F1), _COUNTS),
    scales=scales((PRECISION, RECALL, F1)),
    clusters="entity_recognition_scores",
)


# What nervaluate does otherwise.


_ALL = -1.7976931348623157e308  # below every score
_UNITS = ("entity_recognition_documents", "doc_id", ("tp", "fp", "fn"))


def _nervaluate(name: str, schema: str, words: str, *, typed: bool) -> Profile:
    return Profile(
        name=name,
        tool=f"nervaluate 1.2.1, schema {schema!r}",
        measures={ratio: ratio for ratio in RATIOS},
        conventions=(
            Convention(
                "scores",
                "knows none: every prediction counts",
                {"thresholds": (_ALL,), "boundary": ">="},
                needs_scores=True,
            ),
            Convention("mentions that match", words, {"match": "span", "match_type": typed}),
            Convention("nothing predicted, or nothing to find", "0", ours="NULL", undefined=0.0),
        ),
        exactly="as long as no mention repeats or overlaps another of its side; its overlaps are matched greedily",
        units=_UNITS,
        all_scores=True,
    )


PROFILES = (
    _nervaluate("nervaluate", "strict", "those with the same span and type", typed=True),
    _nervaluate("nervaluate-exact", "exact", "those with the same span, whatever the type", typed=False),
)


# Where the numbers of entity_recognition come from: false positives and misses with what stands beside them.


def _without_each(documents: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Documents with the ratio of all others together or, for a mean of documents, the mean of their ratios."""
    average = asked.row["average"]
    if average in POOLED_AVERAGES:
        return with_influence(documents, asked.measure)
    n_documents = asked.row["n_documents"] - asked.row[f"{asked.measure}_dropped"]
    of_document = ratios(*(pl.col(name) for name in ("tp", "fp", "fn")))[RATIOS.index(asked.measure)]
    if average == "semeval":
        of_document = of_document.fill_null(1.0)
    value = asked.row[asked.measure]
    others = pl.lit(value, dtype=pl.Float64) * n_documents - pl.col(asked.measure).fill_null(0.0)
    n_others = n_documents - pl.col(asked.measure).is_not_null().cast(pl.Int64)
    means = documents.with_columns(of_document.alias(asked.measure)).with_columns(
        pl.when(n_others > 0).then(others / n_others).alias(WITHOUT)
    )
    return by_influence(means, value)


def _without_documents(asked: Asked) -> str:
    if asked.row.get("tp_weight") is not None:
        return "documents that were judged stand for others that were not, so that nothing is known without one of them"
    of_harmonic_mean = asked.row.get("average") == "semeval"  # of two means over all documents
    return untold(asked, "documents", ("precision", "recall") if of_harmonic_mean else RATIOS)


def _inputs(side: str) -> dict[str, dict[str, str]]:
    """The document of a mention, and the mention itself where it has a span."""
    mention = {"doc_id": "doc_id", "start": f"{side}_start", "end": f"{side}_end"}
    return {side: mention, "documents": {"doc_id": "doc_id"}}


EVIDENCE = Evidence(
    measures=tuple(
        Measure(
            ratio.name,
            "entity_recognition_scores",
            tuple(((ratio.name, ratio.formula(suffix)),) for suffix in ("_weight", "")),
        )
        for ratio in (PRECISION, RECALL, F1)
    ),
    sections=(
        Section(
            "false_positives",
            "False positives",
            "Predictions at {threshold} that are matched with no gold mention, beside the gold mention that they "
            "overlap most; the highest scores first.",
            "entity_recognition/explain/false_positives",
            inputs=_inputs("predicted"),
        ),
        Section(
            "misses",
            "Misses",
            "Gold mentions that are matched with no prediction at {threshold}, beside the prediction that they overlap "
            "most, whatever its score; those that no threshold matches come first.",
            "entity_recognition/explain/misses",
            inputs=_inputs("gold"),
        ),
        Section(
            "documents",
            "Documents that carry the scores",
            "Each document with the {measure} that all others have together without it; the largest influence first.",
            "entity_recognition/explain/documents",
            finish=_without_each,
            ranks=True,
            absent=_without_documents,
            inputs={"documents": {"doc_id": "doc_id"}},
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "mentions"},
    points="entity_recognition_operating_points",
    preferred={"average": "micro"},
    parameters={"outcomes": True},
    profiles=PROFILES,
    decides=("match", "match_type", "assignment", "boundary", "invalid_scores"),
)


STAGE = Stage(
    kind="entity_recognition",
    parameters=EntityRecognitionParameters,
    inputs=(PREDICTED, GOLD, DOCUMENTS, JUDGED),
    tables=TABLES,
    count_columns=COUNTS,
    plan=plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
    evidence=EVIDENCE,
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("entity_recognition_documents", "doc_id", has_clusters=True),
)
