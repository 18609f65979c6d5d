"""Labels of a sample: all labels are the numbers of all rows, and the sample is counted as it was drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from typer.testing import CliRunner

import thresher
from pipeline.base.errors import ConfigError, DataError, NoInputError
from pipeline.cli.app import app
from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.api.functions import InputRows

N_ROWS = 4_000
THRESHOLDS = [0.05, 0.2, 0.5]
WEIGHTS = [f"{name}_weight" for name in ("tp", "fp", "fn", "tn")]
RATIOS = ["precision", "recall", "f1", "fpr"]


def predictions_of(seed: int = 1, **columns: object) -> pl.DataFrame:
    """Scored rows in two languages, with the label that people would give as `truth`."""
    random = np.random.default_rng(seed)
    truth = random.random(N_ROWS) < 0.1
    score = 1 / (1 + np.exp(-(random.normal(size=N_ROWS) + 2 * truth - 3)))
    rows = {
        "id": np.arange(N_ROWS),
        "score": score,
        "truth": truth,
        "lang": np.where(random.random(N_ROWS) < 0.3, "nl", "en"),
    }
    return pl.DataFrame({**rows, **columns})


def labelled(sheet: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """The sheet, filled in to its end."""
    truth = predictions.select("id", pl.col("truth").alias("label"))
    return sheet.drop("label").join(truth, on="id", how="left", maintain_order="left")


def sheet_of(predictions: pl.DataFrame, size: int = 300, **wish: Any) -> pl.DataFrame:  # noqa: ANN401 - keywords
    """A sheet that `thresher.sample` draws, filled in."""
    return labelled(thresher.sample(predictions=predictions.drop("truth"), size=size, **wish), predictions)


def swept(predictions: pl.DataFrame, labels: InputRows, **parameters: Any) -> thresher.Result:  # noqa: ANN401 - keywords
    """The curve at a few thresholds."""
    asked: dict[str, Any] = {"thresholds": THRESHOLDS, "outcomes": False} | parameters
    return thresher.threshold_sweep(predictions=predictions.drop("truth"), labels=labels, **asked)


def test_labels_of_all_rows_are_the_numbers_of_all_rows() -> None:
    predictions = predictions_of()
    every = predictions.select("id", label="truth")
    of_labels = swept(predictions, every, by=[[], ["lang"]], thresholds="distinct", calibration=False)
    of_rows = thresher.threshold_sweep(
        predictions=predictions.rename({"truth": "label"}), by=[[], ["lang"]], outcomes=False, calibration=False
    )
    counts = ["grouping", "lang", "threshold", "tp", "fp", "fn", "tn"]
    assert of_labels.curve.select(counts).equals(of_rows.curve.select(counts))
    for name, ours, theirs in zip(
        RATIOS, of_labels.curve[RATIOS].iter_columns(), of_rows.curve[RATIOS].iter_columns(), strict=True
    ):
        np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=0, atol=1e-12, err_msg=name)
    total = of_labels.areas.filter(pl.col("grouping") == "all").row(0, named=True)
    truth, score = predictions["truth"], predictions["score"]
    assert total["average_precision"] == pytest.approx(average_precision_score(truth, score), abs=1e-12)
    assert total["roc_auc"] == pytest.approx(roc_auc_score(truth, score), abs=1e-12)
    for name in ("average_precision", "roc_auc", "pr_auc"):
        assert total[f"{name}_lower"] == pytest.approx(total[f"{name}_upper"], abs=1e-12), "nothing is left to chance"
        assert total[name] == pytest.approx(of_rows.areas.filter(pl.col("grouping") == "all")[name][0], abs=1e-9)


def test_rows_above_thresholds_are_counted_not_estimated() -> None:
    predictions = predictions_of()
    curve = swept(predictions, sheet_of(predictions, by=["score", "lang"]), by=[[], ["lang"]]).curve
    for row in curve.iter_rows(named=True):
        group = predictions if row["lang"] is None else predictions.filter(lang=row["lang"])
        retrieved = (group["score"] >= row["threshold"]).sum()
        assert row["tp_weight"] + row["fp_weight"] == pytest.approx(retrieved, abs=1e-6)
        assert sum(row[name] for name in WEIGHTS) == pytest.approx(group.height, abs=1e-6)
        assert row["recall"] == pytest.approx(row["tp_weight"] / (row["tp_weight"] + row["fn_weight"]), abs=1e-12)
        assert row["recall_lower"] <= row["recall"] <= row["recall_upper"]


@pytest.mark.parametrize("boundary", [">=", ">"])
def test_it_is_the_difference_estimator(boundary: str) -> None:
    score = np.repeat([0.1, 0.3, 0.5, 0.9], 25)
    truth = np.arange(100) % 25 < np.repeat([1, 5, 10, 20], 25)
    labels = np.arange(3, 100, 10)  # ten labels are of one stratum
    predictions = pl.DataFrame({"id": np.arange(100), "score": score, "truth": truth})
    sheet = predictions[labels.tolist()].select("id", label="truth")
    curve = swept(predictions, sheet, sampling="simple", thresholds=[0.3, 0.5], boundary=boundary).curve
    share, n = truth[labels].mean(), len(labels)
    correction = 1 + (1 - n / 100) / (n - 1)
    for threshold, tp in curve.select("threshold", "tp_weight").rows():
        above = score >= threshold if boundary == ">=" else score > threshold
        rest = ((truth[labels] - share) * above[labels]).sum() * 100 / n
        assert tp == pytest.approx(share * above.sum() + correction * rest, abs=1e-9)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_that_others_drew_weigh_the_inverse_of_their_probability(is_weighted: bool) -> None:  # noqa: FBT001
    number = np.arange(400)
    truth = number % 8 < np.where(number < 200, 6, 1)
    weight = 1.0 + number % 3 if is_weighted else np.ones(400)
    predictions = pl.DataFrame({"id": number, "score": 0.5, "truth": truth, "w": weight})
    drawn = (number % 2 == 0) & (
        (number < 200) | (number % 20 == 0)
    )  # half of the first 200, a twentieth of the others
    probability = np.where(number < 200, 0.5, 0.05)
    sheet = pl.DataFrame({"id": number[drawn], "label": truth[drawn], "probability": probability[drawn]})
    rows = {"path": predictions.drop("truth"), "columns": {"weight": "w"} if is_weighted else {}}
    curve = thresher.threshold_sweep(
        predictions=rows, labels=sheet, thresholds=[0.5], units=False, outcomes=False
    ).curve
    stands_for = (weight / probability)[drawn]
    share = stands_for @ truth[drawn] / stands_for.sum()
    assert curve["tp_weight"][0] == pytest.approx(share * weight.sum(), abs=1e-9)
    assert curve["tp_weight"][0] + curve["fp_weight"][0] == pytest.approx(weight.sum(), abs=1e-9)


def test_means_over_samples_are_the_numbers_of_all_rows() -> None:
    predictions = predictions_of()
    truth = predictions.filter(truth=True)
    recalls = []
    for seed in range(40):
        curve = swept(predictions, sheet_of(predictions, 200, seed=seed), uncertainty="none", units=False).curve
        recalls.append((curve["tp_weight"] / (curve["tp_weight"] + curve["fn_weight"])).to_numpy())
    recall = np.array([(truth["score"] >= threshold).mean() for threshold in THRESHOLDS])
    error = np.std(recalls, axis=0) / np.sqrt(len(recalls))
    assert (np.abs(np.mean(recalls, axis=0) - recall) < 4 * error + 0.01).all()


def test_two_sheets_in_a_row_are_one_sample() -> None:
    predictions = predictions_of()
    first = sheet_of(predictions, 100)
    second = labelled(thresher.sample(predictions=predictions.drop("truth"), size=200, labelled=first), predictions)
    curve = swept(predictions, [first, second]).curve
    together = swept(predictions, pl.concat([second, first])).curve
    assert curve.equals(together)
    alike = swept(predictions, pl.concat([first, second]).drop("probability")).curve
    assert curve.equals(alike), "rows of one stratum weigh the same, whatever batch they came in"


def test_spelling_order_and_types_do_not_matter() -> None:
    predictions = predictions_of()
    sheet = sheet_of(predictions)
    curve = swept(predictions, sheet).curve
    words = pl.col("label").replace_strict({True: " Yes", False: "0"}, return_dtype=pl.String)
    as_text = sheet.with_columns(words, pl.col("id").cast(pl.String), pl.lit("looked at").alias("note"))
    assert swept(predictions.sample(fraction=1, shuffle=True, seed=1), as_text.reverse()).curve.equals(curve)


def test_a_proxy_makes_limits_narrower_and_a_useless_one_hardly_wider() -> None:
    predictions = predictions_of()
    random = np.random.default_rng(5)
    sheet = sheet_of(predictions)

    def width(proxy: NDArray[Any] | None) -> float:
        columns = {} if proxy is None else {"proxy": "judged"}
        rows = predictions if proxy is None else predictions.with_columns(pl.Series("judged", proxy, dtype=pl.Float64))
        curve = thresher.threshold_sweep(
            predictions={"path": rows.drop("truth"), "columns": columns},
            labels=sheet,
            thresholds=THRESHOLDS,
            outcomes=False,
            units=False,
        ).curve
        return float(np.mean((curve["precision_upper"] - curve["precision_lower"]).to_numpy()))

    without = width(None)
    truth = predictions["truth"].to_numpy()
    good = np.where(random.random(N_ROWS) < 0.97, truth, ~truth)
    assert width(good) < 0.8 * without
    assert width(random.random(N_ROWS)) < 1.1 * without


def test_documents_drawn_whole_are_the_clusters() -> None:
    predictions = predictions_of(doc=np.arange(N_ROWS) // 20)
    drawn = np.random.default_rng(2).choice(N_ROWS // 20, 30, replace=False)
    labels = predictions.filter(pl.col("doc").is_in(drawn)).select("id", label="truth")
    result = swept(predictions, labels, sampling="simple", cluster="doc")
    curve = result.curve
    assert result.areas["n_clusters"].to_list() == [30]
    assert ((curve["recall_lower"] <= curve["recall"]) & (curve["recall"] <= curve["recall_upper"])).all()


def test_a_plan_takes_documents_for_a_few_of_very_many_as_limits_do() -> None:
    predictions = predictions_of(doc=np.arange(N_ROWS) // 10)
    drawn = np.random.default_rng(2).choice(N_ROWS // 10, 100, replace=False)
    sheet = predictions.filter(pl.col("doc").is_in(drawn)).select("id", label="truth")
    plans = [
        swept(predictions, sheet, sampling="simple", **keys).plan(metric="recall", width=0.001)
        for keys in ({}, {"cluster": "doc"})
    ]
    of_rows, of_documents = (plan.plans[0].units[-3].needed or 0 for plan in plans)
    assert 0 < of_rows <= N_ROWS < of_documents
    assert ["label all of them" in str(plan) for plan in plans] == [False, True]


def test_every_table_can_be_made() -> None:
    predictions = predictions_of(site=np.arange(N_ROWS) % 3)
    result = swept(
        predictions,
        sheet_of(predictions, 500),
        by=[[], ["site"]],
        operating_points=[
            {"beta": 1},
            {"min_precision": 0.3, "confidence": 0.8},
            {"cost": {"fp": 1, "fn": 5}},
            {"threshold": 0.2},
            {"max_alerts": 300},
        ],
        metrics=["mcc", "npv", "specificity"],
        averages=["macro", "micro"],
        prevalence=0.02,
        net_benefit=True,
        bands=True,
        units=True,
        calibration=True,
        outcomes=True,
    )
    assert len(result.tables) >= 12
    for name, table in result.tables.items():
        assert table.height, name
    points = result.operating_points
    promised = points.filter(pl.col("criterion").str.contains("confidence"), pl.col("precision").is_not_null())
    assert (promised["precision"] >= 0.3).all()
    for name in ("mcc", "npv", "specificity", "precision"):
        rows = points.drop_nulls([name, f"{name}_lower"])
        assert ((rows[f"{name}_lower"] <= rows[name]) & (rows[name] <= rows[f"{name}_upper"])).all(), name


WRONG: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "an id twice": (lambda sheet: pl.concat([sheet, sheet.head(1)]), "is there more than once"),
    "an unknown id": (lambda sheet: sheet.with_columns(pl.col("id") + 10_000_000), "no row of predictions has"),
    "no id": (lambda sheet: sheet.with_columns(pl.lit(None, pl.Int64).alias("id")), "column 'id' is NULL in 300 rows"),
    "a word": (
        lambda sheet: sheet.with_columns(pl.lit("perhaps").alias("label")),
        "says neither true nor false in 300 rows, such as 'perhaps'",
    ),
    "no design": (lambda sheet: sheet.select("id", "label"), "it has neither probability nor stratum"),
    "another stratum": (
        lambda sheet: sheet.select("id", "label", pl.lit("north").alias("stratum")),
        "is not that of a sheet of these predictions",
    ),
    "no share": (
        lambda sheet: sheet.with_columns(pl.col("probability") * 1_000),
        "column 'probability' is not above 0 and at most 1",
    ),
    "no label": (lambda sheet: sheet.with_columns(pl.lit(None, pl.Boolean).alias("label")), "not labelled"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_sheet_at_fault_is_refused_in_one_sentence(fault: str) -> None:
    predictions = predictions_of()
    change, words = WRONG[fault]
    with pytest.raises((DataError, NoInputError), match=words) as refused:
        swept(predictions, change(sheet_of(predictions)))
    assert refused.value.remedy
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"invalid_scores": "missed"}, "does not go with labels"),
        ({"cluster": ["lang", "id"]}, "know one cluster"),
        ({"labels": None, "sampling": "simple"}, "give labels, or leave sampling out"),
        ({"labels": None, "checked": "people.csv"}, "give labels, or leave checked out"),
    ],
)
def test_parameters_that_do_not_go_with_labels_are_refused(parameters: dict[str, Any], words: str) -> None:
    predictions = predictions_of()
    with pytest.raises(ConfigError, match=words):
        swept(predictions, **{"labels": sheet_of(predictions)} | parameters)


def test_a_sheet_that_was_drawn_from_other_rows_is_told() -> None:
    predictions = predictions_of()
    of_half = sheet_of(predictions.head(N_ROWS // 2))
    words = "rows stand for 2,000 of 4,000 predictions"
    assert any(words in text for text in swept(predictions, of_half).warnings)
    own = swept(predictions.head(N_ROWS // 2), of_half.head(100))  # people may leave rows that they did not get to
    assert not any("stand for" in text for text in own.warnings)


def test_a_judge_is_corrected_by_what_people_say() -> None:
    predictions = predictions_of()
    random = np.random.default_rng(3)
    truth = predictions["truth"].to_numpy()
    said = np.where(random.random(N_ROWS) < 0.1, ~truth, truth)
    sheet = sheet_of(predictions, 800).with_columns(
        pl.col("id").replace_strict(dict(enumerate(said.tolist()))).alias("label")
    )
    seen = random.choice(sheet["id"].to_numpy(), 400, replace=False)
    people = predictions.filter(pl.col("id").is_in(seen)).select("id", label="truth")
    both = people.join(sheet.select("id", said="label"), on="id")
    sensitivity = np.mean(both.filter("label")["said"].to_numpy())
    specificity = 1 - np.mean(both.filter(~pl.col("label"))["said"].to_numpy())
    as_said = swept(predictions, sheet, uncertainty="none").curve
    corrected = swept(predictions, sheet, checked=people).curve
    retrieved = (as_said["tp_weight"] + as_said["fp_weight"]).to_numpy()
    by_hand = (as_said["tp_weight"].to_numpy() - (1 - specificity) * retrieved) / (sensitivity + specificity - 1)
    by_hand = np.clip(by_hand, 0, retrieved)
    # the corrected number never falls with the threshold, and so lies above this one here and there
    assert (corrected["tp_weight"].to_numpy() >= by_hand - 1e-9).all()
    np.testing.assert_allclose(corrected["tp_weight"].to_numpy(), by_hand, rtol=0.03)
    one = swept(predictions, sheet, checked=people, thresholds=[0.2]).curve
    assert (one["precision_upper"] - one["precision_lower"])[0] > 0
    with pytest.raises(DataError, match="no better than chance"):
        swept(predictions, sheet, checked=people.with_columns(~pl.col("label")))
    with pytest.raises(DataError, match="are of no row that labels have a label of"):
        swept(predictions, sheet, checked=people.with_columns(pl.col("id") + N_ROWS))
    with pytest.raises(DataError, match="the checked rows must hold a true and a false one"):
        swept(predictions, sheet, checked=people.filter("label"))


def test_a_judge_can_be_written_as_one() -> None:
    def written_as(**inputs: object) -> ThresholdSweepParameters:
        predictions = {"path": "p.parquet"}
        return ThresholdSweepParameters.model_validate({"name": "a", "predictions": predictions, **inputs})

    judge = {"labels": {"path": "l.csv"}, "checked": {"path": "c.csv"}}
    assert written_as(judge=judge) == written_as(**judge)
    with pytest.raises(ValueError, match=r"write \{ labels = …, checked = … \}"):
        written_as(judge={"labels": {"path": "l.csv"}})
    with pytest.raises(ValueError, match="judge names labels, which stands beside it"):
        written_as(judge=judge, labels={"path": "l.csv"})


def test_bands_and_costs_know_the_design() -> None:
    """The band holds the whole curve, nowhere narrower than single limits, and the limits of costs hold the cost."""
    criteria = [{"cost": {"fp": 1, "fn": 30}}, {"beta": 1}]
    holds_curve, holds_cost = [], []
    for seed in range(6):
        predictions = predictions_of(seed)
        truth, score = predictions["truth"].to_numpy(), predictions["score"].to_numpy()
        result = swept(
            predictions,
            sheet_of(predictions, 400, seed=seed),
            bands=True,
            operating_points=criteria,
            thresholds=THRESHOLDS,
            calibration=False,
        )
        band = result.tables["threshold_sweep_bands"].sort("threshold")
        assert set(band["method"]) == {"sup_t_sample"}
        single = result.curve.sort("threshold")
        retrieved = score >= band["threshold"].to_numpy()[:, None]
        true = {
            "precision": (retrieved & truth).sum(1) / retrieved.sum(1),
            "recall": (retrieved & truth).sum(1) / truth.sum(),
            "fpr": (retrieved & ~truth).sum(1) / (~truth).sum(),
        }
        for name, numbers in true.items():
            lower, upper = (band[f"{name}_{side}"].to_numpy() for side in ("lower", "upper"))
            assert (lower <= single[f"{name}_lower"].to_numpy() + 1e-12).all()
            assert (upper >= single[f"{name}_upper"].to_numpy() - 1e-12).all()
            assert (band[f"critical_{name}"] >= 1.95).all()
            holds_curve.append(((lower <= numbers) & (numbers <= upper)).all())
        point = (
            result.tables["threshold_sweep_operating_points"].filter(pl.col("cost").is_not_null()).row(0, named=True)
        )
        above = score >= point["threshold"]
        cost = ((above & ~truth).sum() + 30 * (~above & truth).sum()) / len(truth)
        assert point["cost_per_row_lower"] <= point["cost_per_row"] <= point["cost_per_row_upper"]
        holds_cost.append(point["cost_per_row_lower"] <= cost <= point["cost_per_row_upper"])
        sheet = sheet_of(predictions, 400, seed=seed)
        only = swept(
            predictions, sheet, operating_points=criteria[:1], thresholds=[point["threshold"]], calibration=False
        )
        alone = only.tables["threshold_sweep_operating_points"].row(0, named=True)
        for side in ("lower", "upper"):
            assert point[f"cost_per_row_{side}"] == pytest.approx(alone[f"cost_per_row_{side}"], rel=0.02)
    assert np.mean(holds_curve) > 0.85
    assert np.mean(holds_cost) > 0.6


@pytest.mark.parametrize(("thresholds", "boundary"), [(None, ">"), (THRESHOLDS, ">=")])
def test_net_benefit_is_that_of_the_curve_and_knows_the_design(thresholds: list[float] | None, boundary: str) -> None:
    probabilities = [0.02, 0.1, 0.3]
    odds = np.array(probabilities) / (1 - np.array(probabilities))
    holds = []
    for seed in range(4):
        predictions = predictions_of(seed)
        sheet = sheet_of(predictions, 150, seed=seed)
        asked = {"net_benefit": True, "threshold_probabilities": probabilities, "thresholds": thresholds}
        table = swept(predictions, sheet, calibration=False, boundary=boundary, **asked).net_benefit
        assert table is not None
        at = swept(predictions, sheet, thresholds=probabilities, calibration=False, boundary=boundary).curve
        expected = (at["tp_weight"].to_numpy() - odds * at["fp_weight"].to_numpy()) / N_ROWS
        np.testing.assert_allclose(table["net_benefit"].to_numpy(), expected, atol=1e-12)
        assert table["n"].to_list() == [150] * 3
        truth = predictions["truth"].to_numpy()
        above = predictions["score"].to_numpy() >= np.array(probabilities)[:, None]
        true = ((above & truth).sum(1) - odds * (above & ~truth).sum(1)) / N_ROWS
        of_all = (truth.sum() - odds * (~truth).sum()) / N_ROWS
        for name, number in (("net_benefit", true), ("net_benefit_difference", true - np.maximum(of_all, 0))):
            lower, upper = (table[f"{name}_{side}"].to_numpy() for side in ("lower", "upper"))
            holds.append((lower <= number) & (number <= upper))
    assert np.mean(holds) > 0.75


def test_a_proxy_is_found_by_its_name_beside_labels() -> None:
    predictions = predictions_of(proxy=predictions_of()["truth"].cast(pl.Float64))
    sheet = sheet_of(predictions)
    by_name = swept(predictions, sheet, outcomes=False, calibration=False)
    without = swept(predictions.drop("proxy"), sheet, outcomes=False, calibration=False)
    curves = (by_name.curve, without.curve)
    bound = by_name.tables["bindings"].filter(pl.col("field") == "proxy")
    assert bound["file_column"].to_list() == ["proxy"]
    widths = [np.ptp(curve.select("precision_lower", "precision_upper").to_numpy(), axis=1).sum() for curve in curves]
    assert widths[0] < 0.8 * widths[1]
    lacking = predictions.with_columns(proxy=pl.when(pl.col("id") > 3).then(pl.col("proxy")))
    with pytest.raises(DataError, match="'proxy' is NULL or not finite in 4 rows") as caught:
        swept(lacking, sheet)
    assert "If it is something else" in str(caught.value.remedy)
    left_alone = {"path": lacking.drop("truth"), "columns": {"proxy": False}}
    followed = thresher.threshold_sweep(predictions=left_alone, labels=sheet, thresholds=THRESHOLDS, outcomes=False)
    assert followed.curve.equals(swept(lacking.drop("proxy"), sheet).curve)
    text = predictions.rename({"truth": "label"}).with_columns(proxy=pl.lit("host:8080"))
    assert thresher.threshold_sweep(predictions=text, thresholds=THRESHOLDS).curve.height == len(THRESHOLDS)


def test_limits_of_a_choice_on_other_labels_are_those_of_the_curve_around_it() -> None:
    """As far away as those of the curve at the chosen threshold, on the side to which they need not be widened."""
    predictions = predictions_of()
    result = swept(predictions, sheet_of(predictions, 400), operating_points=[{"min_recall": 0.8}], calibration=False)
    point = result.tables["threshold_sweep_operating_points"].row(0, named=True)
    assert point["threshold"] == THRESHOLDS[0]
    for name in ("precision", "recall", "f1"):
        ratio, lower, upper = (point[f"{name}_cross_fitted{end}"] for end in ("", "_lower", "_upper"))
        below, above = (point[name] - point[f"{name}_lower"], point[f"{name}_upper"] - point[name])
        assert 0 <= lower <= ratio <= upper <= 1
        assert lower <= max(ratio - below, 0.0) + 1e-9
        assert upper >= min(ratio + above, 1.0) - 1e-9
        assert min(abs(lower - max(ratio - below, 0.0)), abs(upper - min(ratio + above, 1.0))) < 1e-9


def test_several_predictions_of_one_item_need_a_column_that_tells_them_apart() -> None:
    predictions = predictions_of()
    sheet = sheet_of(predictions)
    systems = pl.concat(
        [
            predictions.with_columns(model=pl.lit(name), score=pl.col("score") ** power)
            for name, power in (("a", 1), ("b", 0.7))
        ]
    )
    with pytest.raises(DataError, match="is that of several predictions"):
        swept(systems, sheet)
    curve = swept(systems, sheet, by=[["model"]]).curve
    assert curve["model"].unique().sort().to_list() == ["a", "b"]
    a = swept(predictions, sheet.drop("stratum")).curve
    assert curve.filter(model="a")["recall"].to_list() == pytest.approx(a["recall"].to_list())


def test_a_column_of_labels_with_gaps_names_the_input_of_a_sample() -> None:
    predictions = predictions_of().with_columns(label=pl.when(pl.int_range(pl.len()) % 20 == 0).then("truth"))
    with pytest.raises(DataError, match="NULL") as refused:
        thresher.threshold_sweep(predictions=predictions.drop("truth"))
    assert refused.value.remedy is not None
    assert "If only a sample has it, name that as labels, with id." in refused.value.remedy
    followed = swept(predictions, predictions.drop_nulls("label").select("id", "label"), sampling="simple")
    assert followed.areas["n"].to_list() == [N_ROWS // 20]


def test_scores_that_are_no_numbers_are_dropped_as_the_remedy_says() -> None:
    predictions = predictions_of()
    sheet = sheet_of(predictions)
    broken = predictions.with_columns(score=pl.when(pl.col("id") % 500 == 0).then(float("nan")).otherwise("score"))
    with pytest.raises(DataError, match="column 'score' is NaN in 8 rows") as refused:
        swept(broken, sheet)
    assert refused.value.remedy is not None
    assert "missed" not in refused.value.remedy  # which does not go with labels of a sample
    curve = swept(broken, sheet, invalid_scores="drop").curve
    assert (
        curve["tp_weight"] + curve["fp_weight"] + curve["fn_weight"] + curve["tn_weight"]
    ).to_list() == pytest.approx([N_ROWS - 8] * 3)


def test_a_sheet_without_a_row_gives_zeros_where_that_is_allowed() -> None:
    predictions = predictions_of()
    nothing = sheet_of(predictions).clear()
    with pytest.raises(DataError, match="Fill in the column label of the sheet") as refused:
        swept(predictions, nothing)
    assert refused.value.code == 65
    groupings: tuple[list[list[str]], ...] = ([[]], [[], ["lang"]])
    for by in groupings:
        assert swept(predictions, nothing, by=by, allow_empty=True).areas["n"].to_list() == [0]


def test_it_says_what_is_left_out() -> None:
    predictions = predictions_of()
    sheet = sheet_of(predictions)
    is_hard = (pl.int_range(pl.len()) % 10 == 0) & (pl.int_range(pl.len()) < 200)
    some = sheet.with_columns(pl.when(~is_hard).then("label"))
    result = swept(predictions, some)
    assert any("20 rows without a label lie before others" in text for text in result.warnings)
    stopped = swept(predictions, sheet.with_columns(pl.when(pl.int_range(pl.len()) < 120).then("label")))
    assert not any("lie before others" in text for text in stopped.warnings), "people may stop early"
    groups = swept(predictions.with_columns(site=pl.col("id") % 100), sheet.head(40), by=[[], ["site"]])
    assert any("groups have no labelled row, and no numbers" in text for text in groups.warnings)


def test_from_a_table_without_labels_to_a_curve_on_the_command_line(tmp_path: Path) -> None:
    predictions = predictions_of()
    predictions.drop("truth").write_parquet(tmp_path / "scores.parquet")
    config = tmp_path / "my.toml"
    config.write_text(
        'output = "results"\n[[stages]]\nkind = "threshold_sweep"\n'
        'predictions = "scores.parquet"\nlabels = "sheet.csv"\n'
    )
    runner, sheet = CliRunner(), tmp_path / "sheet.csv"
    drawn = runner.invoke(app, ["sample", str(config), "--size", "250", "--to", str(sheet)])
    assert drawn.exit_code == 0, drawn.output
    filled = labelled(pl.read_csv(sheet), predictions).with_columns(
        pl.col("label").replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    )
    filled.write_csv(sheet)
    for command in (["check", str(config)], ["run", str(config)], ["show", str(tmp_path / "results")]):
        result = runner.invoke(app, command)
        assert result.exit_code == 0, result.output
    explained = runner.invoke(
        app, ["explain", str(tmp_path / "results"), "threshold_sweep", "--metric", "recall", "--format", "json"]
    )
    assert explained.exit_code == 0, explained.output
    assert "strata of the sample" in json.dumps(json.loads(explained.output))
    rendered = runner.invoke(app, ["render", str(config)])
    assert rendered.exit_code == 0, rendered.output
    assert "labels_beside_predictions" in rendered.output
    plans = []
    for width in (0.04, 0.0001):
        words = ["plan", str(tmp_path / "results"), "--metric", "recall", "--width", str(width), "--format", "json"]
        planned = runner.invoke(app, words)
        assert planned.exit_code == 0, planned.output
        plans += json.loads(planned.output)["plans"]
    needed, all_rows = (plan["units"][0]["needed"] for plan in plans)
    assert 250 < needed < all_rows <= N_ROWS
    without_end = 250 * (plans[0]["now"] / 0.04) ** 2  # about so many of rows without an end
    assert needed == pytest.approx(1 / ((1 - 250 / N_ROWS) / without_end + 1 / N_ROWS), rel=0.05)
