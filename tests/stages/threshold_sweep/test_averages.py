"""Averages over groups of whole runs: against scikit-learn's averages and plain means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import swept
from sklearn.metrics import average_precision_score as average_precision
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from pipeline.base.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

EVERY = ["micro", "macro", "weighted"]
CLASSES = 4


def indicator(seed: int = 1, rows: int = 120) -> tuple[Any, Any]:
    """Labels and scores of several classes at once, shape (rows, classes)."""
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=(rows, CLASSES)) < [0.1, 0.3, 0.5, 0.2]
    return labels, np.round(rng.normal(labels * 1.3, 1.0), 1)


def long_form(labels: Any, scores: Any) -> pl.DataFrame:  # noqa: ANN401 - arrays
    item, own = (each.ravel() for each in np.indices(labels.shape))
    return pl.DataFrame({"id": item, "class": own, "score": scores.ravel(), "label": labels.ravel()})


def test_averages_are_those_of_scikit_learn(tmp_path: Path) -> None:
    labels, scores = indicator()
    thresholds = [-0.5, 0.4, 0.45]
    table = swept(tmp_path, long_form(labels, scores), by=["class"], thresholds=thresholds, averages=EVERY)["averages"]
    assert table["averaged"].unique().to_list() == ["class"]
    assert table["n_groups"].unique().to_list() == [CLASSES]
    for row in table.iter_rows(named=True):
        average, threshold = row["average"], row["threshold"]
        assert (row["grouping"], row["class"], row["n_undefined"]) == ("all", None, 0)
        if threshold is None:
            assert row["average_precision"] == pytest.approx(average_precision(labels, scores, average=average))
            assert row["roc_auc"] == pytest.approx(roc_auc_score(labels, scores, average=average))
            assert [row[name] for name in ("precision", "recall", "f1", "fpr")] == [None] * 4
        else:
            predicted = scores >= threshold
            for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
                wanted = score(labels, predicted, average=average, zero_division=0)
                assert row[name] == pytest.approx(wanted, rel=1e-12), name
            assert [row[name] for name in ("average_precision", "pr_auc", "roc_auc")] == [None] * 3
    keys = list(zip(table["average"].to_list(), table["threshold"].to_list(), strict=True))
    assert sorted(keys, key=str) == sorted(((each, t) for each in EVERY for t in [*thresholds, None]), key=str)


def test_averages_of_rows_with_weights_are_those_of_scikit_learn(tmp_path: Path) -> None:
    """Weights that go along with the class, so that groups count otherwise by weight than by number."""
    labels, scores = indicator(6)
    own = np.indices(labels.shape)[1]
    weights = np.random.default_rng(7).integers(1, 5, labels.shape) * np.array([1, 30, 2, 9])[own]
    frame = long_form(labels, scores).with_columns(w=weights.ravel())
    columns = {"predictions": {"columns": {"weight": "w"}}}
    keys: dict[str, Any] = {"by": ["class"], "thresholds": [0.4, 0.9], "averages": ["macro", "weighted"]}
    tables = swept(tmp_path, frame, **keys, **columns)
    positives = (weights * labels).sum(axis=0)
    for row in tables["averages"].iter_rows(named=True):
        shares = positives / positives.sum() if row["average"] == "weighted" else np.full(CLASSES, 1 / CLASSES)
        groups = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
        if row["threshold"] is None:
            groups = {"average_precision": average_precision, "roc_auc": roc_auc_score}
        for name, score in groups.items():
            against = scores if row["threshold"] is None else scores >= row["threshold"]
            of_classes = [
                score(labels[:, each], against[:, each], sample_weight=weights[:, each]) for each in range(CLASSES)
            ]
            assert row[name] == pytest.approx(shares @ of_classes, rel=1e-9), name
    curve = tables["curve"].filter(pl.col("threshold") == 0.4, pl.col("grouping") == "class").sort("class")
    distances = (curve["recall"] - curve["recall_lower"]).to_numpy() * positives / positives.sum()
    at = tables["averages"].filter(pl.col("threshold") == 0.4, pl.col("average") == "weighted").row(0, named=True)
    assert at["recall"] - at["recall_lower"] == pytest.approx(np.sqrt((distances**2).sum()), rel=1e-9)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_classes_are_weighted_as_by_scikit_learn_with_sample_weight(tmp_path: Path, name: str) -> None:
    """One class per row, as of a classifier: the averages of scikit-learn need no help."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 3, 90)
    guess = np.where(rng.uniform(size=90) < np.array([0.5, 0.9, 0.7])[truth], truth, (truth + 1) % 3)
    weights = rng.integers(1, 4, 90) * np.array([1, 20, 5])[truth]
    rows = [
        {
            "id": item,
            "class": each,
            "score": float(guess[item] == each),
            "label": truth[item] == each,
            "w": weights[item],
        }
        for item in range(90)
        for each in range(3)
    ]
    columns = {"predictions": {"columns": {"weight": "w"}}}
    frame = pl.DataFrame(rows, schema_overrides={"label": pl.Boolean, "w": pl.Float64, "class": pl.Int64})
    table = swept(tmp_path, frame, by=["class"], thresholds=[0.5], averages=["weighted"], **columns)["averages"]
    score = {"precision": precision_score, "recall": recall_score, "f1": f1_score}[name]
    wanted = score(truth, guess, average="weighted", sample_weight=weights)
    assert table.filter(pl.col("threshold") == 0.5)[name].to_list() == pytest.approx([wanted], rel=1e-12)
    assert abs(wanted - score(truth, guess, average="weighted")) > 0.01


def test_micro_needs_the_whole_and_is_it(tmp_path: Path) -> None:
    frame = long_form(*indicator(2))
    tables = swept(tmp_path / "a", frame, by=["class"], thresholds=[0.4], averages=["micro"])
    whole = tables["curve"].filter(pl.col("grouping") == "all").row(0, named=True)
    own = tables["averages"].filter(pl.col("threshold").is_not_null()).row(0, named=True)
    assert [own[name] for name in ("precision", "recall", "f1", "fpr")] == [
        whole[name] for name in ("precision", "recall", "f1", "fpr")
    ]
    with pytest.raises(ConfigError, match=r"add \[\] to by"):
        swept(tmp_path / "b", frame, by=[["class"]], thresholds=[0.4], averages=EVERY)


def test_every_distinct_score_is_no_common_threshold_so_only_areas_are_averaged(tmp_path: Path) -> None:
    tables = swept(tmp_path, long_form(*indicator(3)), by=["class"], averages=["macro"])
    assert tables["averages"]["threshold"].to_list() == [None]
    groups = tables["areas"].filter(pl.col("grouping") == "class")
    for name in ("average_precision", "pr_auc", "roc_auc"):
        assert tables["averages"][name][0] == pytest.approx(groups[name].mean(), rel=1e-12)


def test_groups_where_a_ratio_is_undefined_are_left_out_and_counted(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "class": ["a", "a", "b", "b", "c", "c"],
            "score": [0.9, 0.1, 0.9, 0.1, 0.2, 0.1],
            "label": [True, False, False, False, True, True],
        }
    )
    tables = swept(tmp_path, frame, by=["class"], thresholds=[0.5], averages=["macro", "weighted"])
    rows = {(row["average"], row["threshold"]): row for row in tables["averages"].iter_rows(named=True)}
    at = rows["macro", 0.5]
    assert (at["precision"], at["recall"], at["fpr"]) == (0.5, 0.5, 0.25)  # b has no recall, c no precision and no fpr
    assert (at["n_groups"], at["n_undefined"]) == (3, 2)
    weighted = rows["weighted", 0.5]
    assert weighted["recall"] == pytest.approx((1 * 1 + 2 * 0) / 3)
    assert weighted["precision"] == 1
    areas = rows["macro", None]
    assert areas["average_precision"] == 1
    assert areas["roc_auc"] == 1
    assert areas["n_undefined"] == 2


def test_averages_over_one_of_two_columns_are_made_in_each_group_of_the_other(tmp_path: Path) -> None:
    labels, scores = indicator(4)
    frame = long_form(labels, scores).with_columns(model=pl.lit("x"))
    other = long_form(labels, -scores).with_columns(model=pl.lit("y"))
    table = swept(
        tmp_path,
        pl.concat([frame, other]),
        by=[["model", "class"], ["model"]],
        thresholds=[0.4],
        averages=EVERY,
        average_over=["class"],
    )["averages"]
    assert table["grouping"].unique().to_list() == ["model"]
    assert table["averaged"].unique().to_list() == ["class"]
    assert table.height == 2 * 3 * 2
    for model, sign in (("x", 1), ("y", -1)):
        for average in EVERY:
            own = table.filter((pl.col("model") == model) & (pl.col("average") == average))
            row = own.filter(pl.col("threshold").is_null()).row(0, named=True)
            assert row["average_precision"] == pytest.approx(average_precision(labels, sign * scores, average=average))
            row = own.filter(pl.col("threshold") == 0.4).row(0, named=True)
            predicted = sign * scores >= 0.4
            assert row["f1"] == pytest.approx(f1_score(labels, predicted, average=average, zero_division=0))


@pytest.mark.wide
def test_a_null_group_is_averaged_like_any_other(tmp_path: Path) -> None:
    frame = long_form(*indicator(5)).with_columns(pl.col("class").replace(0, None))
    plain = long_form(*indicator(5))
    keys: dict[str, Any] = {"by": ["class"], "thresholds": [0.4], "averages": ["macro"]}
    own = swept(tmp_path / "null", frame, duplicates="keep", **keys)["averages"]
    other = swept(tmp_path / "plain", plain, **keys)["averages"]
    assert own["n_groups"].to_list() == [4, 4]
    for name in ("f1", "average_precision"):
        found, wanted = (each[name].drop_nulls().to_list() for each in (own, other))
        assert found == pytest.approx(wanted, rel=1e-12)
        assert len(found) == 1


def samples(seed: int, number: int) -> pl.DataFrame:
    """Samples of three classes, whose precision at 0.5 is .9, .6 and .5 and whose recall is .5."""
    rng = np.random.default_rng(seed)
    frames = []
    for label, share in (("a", 0.9), ("b", 0.6), ("c", 0.5)):
        sample = np.repeat(np.arange(number), 80)
        high = rng.random(len(sample)) < 0.5
        frames.append(
            {
                "sample": sample,
                "class": np.full(len(sample), label),
                "score": high * 1.0,
                "label": rng.random(len(sample)) < share,
            }
        )
    return pl.concat([pl.DataFrame(columns) for columns in frames])


@pytest.mark.wide
def test_limits_of_averages_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"by": [["sample"], ["sample", "class"]], "average_over": ["class"], "thresholds": [0.5]}
    table = swept(tmp_path, samples(3, 300), averages=["macro", "weighted"], **keys)["averages"]
    macro = table.filter(pl.col("average") == "macro", pl.col("threshold").is_not_null())
    assert macro.height == 300
    for name, truth in (("precision", 2 / 3), ("recall", 0.5)):
        inside = macro.select(pl.lit(truth).is_between(f"{name}_lower", f"{name}_upper")).to_series()
        assert inside.mean() == pytest.approx(0.955, abs=0.03), name
    assert set(macro["undefined_interval"]) == {None}
    assert table.filter(pl.col("average_precision_lower") >= pl.col("average_precision")).is_empty()
    assert table["average_precision_lower"].null_count() == table["average_precision"].null_count()


@pytest.mark.wide
def test_limits_of_averages_add_up_the_distances_of_the_groups(tmp_path: Path) -> None:
    frame = samples(4, 1).with_columns(page=pl.int_range(pl.len()) % 40)
    keys: dict[str, Any] = {"by": ["class"], "thresholds": [0.5], "averages": EVERY}
    for name, cluster in (("rows", {}), ("clusters", {"cluster": "page"})):
        tables = swept(tmp_path / name, frame, **keys, **cluster)
        curve = tables["curve"].sort("class", nulls_last=True)
        groups, total = curve[:3], curve.row(3, named=True)
        rows = tables["averages"].filter(pl.col("threshold").is_not_null()).to_dicts()
        averages = {row["average"]: row for row in rows}
        assert averages["micro"]["f1_lower"] == total["f1_lower"]
        positives = (groups["tp"] + groups["fn"]).to_numpy()
        for average, weights in (("macro", np.full(3, 1 / 3)), ("weighted", positives / positives.sum())):
            distances = weights * (groups["f1"] - groups["f1_lower"]).to_numpy()
            distance = distances.sum() if cluster else np.sqrt((distances**2).sum())
            row = averages[average]
            assert row["f1"] - row["f1_lower"] == pytest.approx(distance)
    none = swept(tmp_path / "none", frame, **keys, uncertainty="none")["averages"]
    assert set(none["undefined_interval"]) == {"none"}
    assert none["f1_lower"].null_count() == none.height
