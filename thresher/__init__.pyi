"""Made from the parameter classes by tests/api/generating.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pipeline.api.functions import InputRows
from pipeline.api.functions import Result as Result
from pipeline.api.running import open_results as open_results
from pipeline.api.running import plan_sample as plan_sample
from pipeline.api.running import run as run
from pipeline.api.running import sample as sample
from pipeline.base.errors import ThresherError as ThresherError
from pipeline.report.planned import Planned as Planned
from pipeline.runs.stage_results import Run as Run

__version__: str

def before_after(
    *,
    pairs: InputRows,
    events: InputRows | None = None,
    articles: InputRows | None = None,
    gold: InputRows | None = None,
    gold_articles: InputRows | None = None,
    audited: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = None,
    cluster: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    window: Mapping[str, Any] | None = None,
    compared: Literal["events", "timelines", "pairs"] | None = None,
    recall_reference: Mapping[str, Any] | None = None,
    strata: Sequence[str] = (),
    lag_thresholds: Sequence[float] = (),
    audit: Mapping[str, Any] | None = None,
    event_counts: Literal["auto"] | bool = "auto",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    name: str = "before_after",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision and recall of event-article matching, without gold labels.

    Args:
        pairs: Scored event-article pairs.
        events: One row per event, with its time or its numbers of compared articles.
        articles: One row per article, with its time.
        gold: True matches found by people, for a comparison.
        gold_articles: The articles that were coded; only their pairs are judged. Default: those of gold.
        audited: Matches that people checked: of the audit sample, or of a sheet that `thresher sample` drew.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        window: Time around an event; default: every pair counts. Required for timelines.
        compared: Where the numbers of compared pairs come from: `events`: given there; `timelines`: counted
            from the times of events and articles; `pairs`: every compared pair is a row of pairs. Default: the
            first that the inputs allow.
        recall_reference: The threshold at which recall is taken as known.
        strata: What the false positive rate is adjusted for: `weekday`, `hour` or `volume` of the article, or
            columns.
        lag_thresholds: Thresholds at which matches are counted per day, and a trend before the event is tested.
        audit: A random sample of matches to draw for people to check: `{ threshold = 10.0, size = 200, seed = 1
            }`.
        event_counts: Whether to count matches per event at the chosen threshold, which reads pairs once more;
            `auto`: while pairs has at most 10 million rows.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def threshold_sweep(
    *,
    predictions: InputRows,
    labels: InputRows | None = None,
    checked: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = "distinct",
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    sampling: Literal["simple"] | None = None,
    method: Literal["exact", "binned"] = "exact",
    width: float = 0.0001,
    class_sizes: Literal["fixed", "random"] = "random",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    metrics: Sequence[str] = (),
    max_fpr: float | None = None,
    averages: Sequence[Literal["micro", "macro", "weighted"]] = (),
    average_over: Sequence[str] = (),
    net_benefit: bool = False,
    threshold_probabilities: Mapping[str, Any] | Sequence[float] | None = None,
    prevalence: float | Sequence[float] = (),
    outcomes: Literal["auto"] | bool = "auto",
    calibration: Literal["auto"] | bool = "auto",
    calibration_bins: int = 10,
    units: Literal["auto"] | bool = "auto",
    bands: bool = False,
    name: str = "threshold_sweep",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision-recall curves, areas and thresholds of scored, labelled predictions.

    Args:
        predictions: Scored and labelled predictions.
        labels: Labels of a sample of them, in the place of a column `label`.
        checked: Labels that people gave to some of these items, if `labels` are those of a judge, who errs:
            drawn without a look at scores or labels.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        sampling: `simple`: all labelled rows were drawn alike; default: the labels say how they were drawn.
        method: How areas and means of scores are found: `exact`: from all rows; `binned`: from counts in cells
            of scores, in one scan or a few, with certified bounds.
        width: Widest bounds of areas and means that `binned` accepts.
        class_sizes: What the intervals are about: `random`: samples of as many rows; `fixed`: samples with as
            many positives and negatives. With clusters the sizes are always random.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`, the last two perhaps with a `confidence` that they hold on new data; `{ max_alerts = 500 }`, `{
            max_alert_share = 0.01 }`, `{ cost = { fp = 1, fn = 20 } }`; or of your own: `{ threshold = 6.54 }`.
        metrics: Further numbers of the curve and of the operating points: `specificity`, `npv`, `accuracy`,
            `balanced_accuracy`, `youden_j`, `mcc`.
        max_fpr: The false positive rate up to which the area under the ROC curve is wanted, too.
        averages: Averages over groups: `micro`, `macro`, `weighted`.
        average_over: Grouping columns to average over; default: all of a grouping.
        net_benefit: Whether to make decision curves, of scores that are probabilities.
        threshold_probabilities: Where: an even grid or an ascending list from 0 to below 1; default: 0.01 to
            0.99.
        prevalence: Shares of positives for which precision and operating points are wanted, too.
        outcomes: Whether the sample of single rows is made; `auto`: up to one million rows of predictions,
            unless `uncertainty = "none"`.
        calibration: Whether the tables of calibration are made; `auto`: if scores lie in [0, 1].
        calibration_bins: Number of bins of scores, by quantile and of equal width.
        units: Whether the table of units is made, on which `compare` compares systems: of the clusters, else of
            the items that `id` names; `auto`: up to one million rows of predictions, or 250,000 items.
        bands: Whether limits are made that hold at all thresholds together, from draws by `seed`.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def ranking(
    *,
    ranking: InputRows,
    relevance: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = "distinct",
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    cutoffs: Sequence[int] = (
        1,
        5,
        10,
        100,
    ),
    measures: Sequence[str] = (),
    relevance_level: float = 1.0,
    ties: Literal["trec", "expected", "order"] = "trec",
    interpolation: Literal["trec_eval_10", "trec_eval_9"] = "trec_eval_10",
    missing_queries: Literal["error", "zero", "skip"] = "error",
    no_relevant: Literal["null", "zero"] = "null",
    n_candidates: int | None = None,
    null: Literal["exact", "zhang_su_2012"] = "exact",
    name: str = "ranking",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Average precision and other measures of rankings, beside random selection.

    Args:
        ranking: Retrieved documents of every query.
        relevance: Judged documents of every query; default: the column `relevance` of the ranking.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column of queries whose values are independent, such as the family of a query; default: the
            query.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        cutoffs: Numbers of first documents at which precision and recall are measured.
        measures: Further measures by name, as `nDCG@10`, `nDCG(gain=exponential)@10`, `AP@100`, `RBP(p=0.8)`.
        relevance_level: Least relevance of a relevant document.
        ties: Order of documents with equal scores: `trec`: descending by name; `expected`: the mean over all
            orders; `order`: documents come in the order of the column `rank`, whatever the scores.
        interpolation: How many hits interpolated precision at a recall asks for, by version of trec_eval.
        missing_queries: What happens to a query with relevant documents of which none was retrieved in a group.
        no_relevant: Measures of a query without a relevant document: `null`: left out of means; `zero`.
        n_candidates: Documents of the pool that each ranking was made from; default: those ranked.
        null: Moments of average precision under random selection: `exact`; `zhang_su_2012`: as printed there,
            wrong.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def entity_recognition(
    *,
    predicted: InputRows,
    gold: InputRows,
    documents: InputRows | None = None,
    judged: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = "distinct",
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    match: Literal["span", "text", "overlap", "text_near"] = "span",
    match_type: bool = False,
    assignment: Literal["maximum", "file_order"] = "maximum",
    minimum_overlap: float = 0.0,
    overlap_of: Literal["union", "gold"] = "union",
    max_centre_distance: float = 10.0,
    align: Literal["exact", "prefix"] = "exact",
    averages: Sequence[Literal["micro", "macro", "semeval", "semeval_micro"]] = (
        "micro",
        "macro",
    ),
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    outcomes: Literal["auto"] | bool = "auto",
    name: str = "entity_recognition",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Recognition of entities in documents, matched one to one with gold mentions.

    Args:
        predicted: Predicted mentions.
        gold: Gold mentions.
        documents: The documents that are judged.
        judged: Those of the documents that were drawn and judged, where the others were not; a sheet of
            `thresher sample`.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        match: Which mentions may be matched.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of
            the file takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
        align: What becomes of CoNLL sentences whose tokens in gold and predicted differ: `exact`: none may;
            `prefix`: the tokens with which a sentence begins alike are compared, and a warning says what is
            left out.
        averages: Which averages: `micro`: all mentions together; `macro`: mean of documents where defined;
            `semeval`: the macro scores of the scorer of SemEval-2019 Task 12; `semeval_micro`: its micro
            scores.
        operating_points: Thresholds to choose by the counts of all mentions: `{ beta = 1 }`, `{ min_precision =
            0.9 }`, `{ min_recall = 0.8 }`, the last two perhaps with a `confidence` that they hold on new data.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and
            predicted.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def geocoding(
    *,
    predicted: InputRows,
    gold: InputRows,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = None,
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    match: Literal["span", "text", "overlap", "text_near"] | None = None,
    match_type: bool = False,
    assignment: Literal["maximum", "file_order"] = "maximum",
    minimum_overlap: float = 0.0,
    overlap_of: Literal["union", "gold"] = "union",
    max_centre_distance: float = 10.0,
    tolerances_km: Sequence[float] = (
        10.0,
        100.0,
        161.0,
    ),
    tolerance_boundary: Literal["<=", "<"] = "<=",
    candidates: Literal["error", "first", "closest"] = "error",
    distance: Literal["haversine", "geodesic"] = "haversine",
    missing_errors: Literal["exclude", "max_error"] = "exclude",
    outcomes: Literal["auto"] | bool = "auto",
    units: Literal["auto"] | bool = "auto",
    unit_tolerance_km: float | None = None,
    name: str = "geocoding",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Places of toponyms: accuracy within distances, and errors in kilometres.

    Args:
        predicted: Predicted places.
        gold: Gold places.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        match: Which mentions may be matched: `span`: the same characters; `text`: the same normalised text
            anywhere in the document; `overlap`: characters in common; `text_near`: the same text and close
            centres; None: none are.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of
            the file takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
        tolerances_km: Largest distances that count as correct, rising.
        tolerance_boundary: Whether a distance equal to the tolerance is within it.
        candidates: What happens when a mention has several predicted rows: `error`; `first`: the one with the
            lowest rank; `closest`: the one nearest to the gold place, the best that any choice among them could
            do.
        distance: `haversine`: great circle on a sphere of 6371.0088 km; `geodesic`: WGS84 ellipsoid, with
            pyproj.
        missing_errors: What mentions that are not located are in the errors: left out, or given the largest
            error.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and
            predicted.
        units: Whether the table of units is made, on which `compare` compares systems; `auto`: likewise.
        unit_tolerance_km: The tolerance at which units are counted, one of `tolerances_km`; default: the
            largest.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def change_points(
    *,
    predictions: InputRows,
    annotations: InputRows,
    margin: float | str | Mapping[str, Any],
    series: InputRows | None = None,
    runs: InputRows | None = None,
    coders: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | Literal["distinct"] | None = "distinct",
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    uncertainty: Literal["jackknife", "bootstrap", "none"] = "jackknife",
    resamples: int = 999,
    seed: int = 0,
    replicates: Literal["auto"] | int = "auto",
    boundary: Literal[">=", ">"] = ">=",
    invalid_scores: Literal["error", "drop", "missed"] = "error",
    duplicates: Literal["error", "max", "keep"] = "error",
    allow_empty: bool = False,
    margin_boundary: Literal["<", "<="] = "<",
    matching: Literal["one_to_one", "any", "roerich", "ruptures", "nearest"] | None = None,
    annotators: Literal["union", "separate", "tcpd"] = "union",
    cooldown: float | str | None = None,
    repeats: Literal["ignore", "false_alarm"] | None = None,
    per: float | str | None = None,
    area_scores: Literal["every", "thresholds"] = "every",
    operating_points: Sequence[Mapping[str, Any]] | None = None,
    series_counts: Literal["auto"] | bool = "auto",
    delays: Literal["auto"] | bool = "auto",
    name: str = "change_points",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Precision, recall and delays of detected change points, within a margin.

    Args:
        predictions: Predicted change points.
        annotations: True change points, as marked by each annotator.
        margin: How far a prediction may lie from a true point: a number in the unit of the positions, a
            duration where they are times, or `{ before = …, after = … }`.
        series: The annotated series, with their numbers of observations; predictions elsewhere are left out.
        runs: What was run, also where nothing was found; predictions of other runs are left out.
        coders: Who looked at which series, also those who marked nothing.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        thresholds: Even grid, ascending list, or `distinct`: every distinct score.
        cluster: Column whose values are independent units; two where rows have two parents, as pairs have, and
            the stage knows them.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        uncertainty: How intervals are made: `jackknife`: closed forms; `bootstrap`: quantiles of resampled
            replicates.
        resamples: Resamples of the bootstrap.
        seed: Of the bootstrap: the same seed gives the same limits.
        replicates: `auto`: one per cluster up to 1,000 clusters, else 64 groups; or a number.
        boundary: Whether a score equal to the threshold is retrieved.
        invalid_scores: What happens to rows whose score is NULL, NaN or infinite: `missed`: they count as below
            every threshold.
        duplicates: What happens to rows that repeat the key columns.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        margin_boundary: Whether a distance equal to the margin matches (`<=`) or not (`<`).
        matching: What a true positive is; default: `one_to_one`, with `annotators = "tcpd"` `nearest`.
        annotators: `union`: all distinct marks of a series; `separate`: one by one; `tcpd`: precision against
            the union, recall averaged over annotators, index 0 added to both sides.
        cooldown: Predictions of a run that come less than this after an alarm are one alarm with it: a number
            in the unit of the positions, or a duration where they are times.
        repeats: What an alarm counts as that lies near a true point and does not detect it: `false_alarm`, the
            default of points, or neither true nor false, `ignore`, the default of incidents that last.
        per: Unit of the observed time, such as `1d`: false alarms are counted per unit.
        area_scores: Whether average precision and pr_auc_roerich use every score, or only the thresholds of the
            stage.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8
            }`, the last two perhaps with a `confidence` that they hold on new data.
        series_counts: Whether to write the table of series; `auto`: up to 10 million rows of predictions and
            marks.
        delays: Whether to write the table of matched predictions; `auto`: up to 1 million such rows.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """

def compare(
    *,
    units: InputRows | None = None,
    by: str | Sequence[str | Mapping[str, str]] | Sequence[Sequence[str | Mapping[str, str]]] | None = None,
    cluster: str | Sequence[str] | None = None,
    cluster_order: str | None = None,
    confidence: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    allow_empty: bool = False,
    of: Sequence[str] = (),
    results: str = "",
    system: str | None = None,
    paired: bool = True,
    baseline: int | str | None = None,
    metrics: Sequence[str] = (),
    contributions: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    tests: Sequence[
        Literal[
            "paired_t",
            "bootstrap_t",
            "wilcoxon",
            "sign",
            "randomization",
            "jackknife_t",
            "welch_t",
            "permutation",
            "bayes",
        ]
    ] = (
        "paired_t",
        "bootstrap_t",
        "randomization",
        "bayes",
    ),
    margin: float | Mapping[str, float] | None = None,
    correction: Literal["holm", "bh", "none"] = "holm",
    missing_units: Literal["error", "skip"] = "error",
    prior: float = 0.5,
    name: str = "compare",
    resources: Mapping[str, Any] | None = None,
) -> Result:
    """Two or more systems on the same units: tests, intervals, posteriors.

    Args:
        units: One row per unit and system.
        by: Groupings; `"a"` or `["a"]` means the total and by `a`, `[["a"]]` only by `a`. In the place of a
            column may stand `{ name = "week", sql = "date_trunc('week', day)" }`, computed from columns of the
            first input, or of the one that `input` names.
        cluster: Column of units whose values are independent, such as the family of a query; default: that of
            the stage in `of`, else the unit.
        cluster_order: Column by whose least value clusters follow each other in time; default: clusters of a
            column of dates follow each other, others do not.
        confidence: Confidence level of intervals.
        resamples: Random swaps of the randomization test, and resamples of the bootstrap.
        seed: Of the random swaps.
        allow_empty: Whether inputs that leave nothing to evaluate give zeros, with a warning; else they are an
            error.
        of: Names of the stages, one or several.
        results: Results folder in which they were published; empty: they come earlier in the same config.
        system: Column that tells the systems apart; with `paired = false` that of the groups.
        paired: Whether all systems have the same units; `false`: each has its own, and nothing is paired.
        baseline: The system that all others are compared with; default: every pair is compared.
        metrics: What is compared; default: what the units offer.
        contributions: Metrics whose values per unit mean nothing alone; their mean is a number of all units,
            such as an area.
        lower_is_better: Metrics of which the lower value is the better one, as of errors and delays.
        tests: Tests to make, with `paired = false` by default `welch_t`, `jackknife_t` and `bayes`; `bayes`
            gives posteriors of the ratios of all counts.
        margin: The difference that would matter, on the scale of the metric: one for all metrics, or by metric.
        correction: How p-values are adjusted for the number of pairs and metrics.
        missing_units: What happens when a system lacks a unit that another has.
        prior: Both shapes of the beta prior of the posteriors.
        name: Name of the stage in results; default: its kind.
        resources: Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`.

    Returns:
        Its result tables, as Polars frames.

    Raises:
        ThresherError: its class and its `code` say what went wrong.
    """
