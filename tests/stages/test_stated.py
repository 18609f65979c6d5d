"""A ratio that a stage states once is in its table, in explain, in comments, among the metrics, and in plans."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.columns import Count, Ratio
from pipeline.metrics.uncertainty.replicates import Cube
from pipeline.stages import STAGES, StageEntry
from pipeline.stages.stated import counted, f_beta_of_row, outcomes_of, ratios_of, with_ratios

ROOT = Path(__file__).parents[2]
STATEMENT = '    Ratio("jaccard", ("tp",), ("fp", "fn"), "nothing at all", "share of all"),\n'
ON_THE_PAGE = (
    '    Estimate("jaccard", "tp / (m_after + positives - tp)", says="share of all {formula}", null="as recall_raw", '
    'only="tp >= 0", scale="plain", rests_on="after"),\n'
)
ASK = """
import json
import sys
from pathlib import Path

import polars as pl
import thresher
from pipeline.storage.catalog import open_results

rows, row, row_number = range(60), pl.col("mention_id"), pl.int_range(pl.len())
if sys.argv[1] == "before_after":
    lags = [(each * 7 % 60 - 20) * 1.7 for each in range(600)]
    pairs = pl.DataFrame({"event_id": [each // 10 for each in range(600)], "lag_hours": lags})
    pairs = pairs.with_columns(score=pl.when(pl.col("lag_hours") > 0).then(0.5).otherwise(0.1) + row_number % 11 / 20)
    result, table = thresher.before_after(pairs=pairs, thresholds=[0.4, 0.6]), "estimates"
elif sys.argv[1] == "geocoding":
    gold = pl.DataFrame({"mention_id": rows, "doc_id": [each // 2 for each in rows], "latitude": 1.0, "longitude": 2.0})
    predicted = gold.filter(row % 7 > 0).select("mention_id", "latitude", longitude=2.0 + (row * 13 % 5 > 3) * 9)
    result, table = thresher.geocoding(predicted=predicted, gold=gold, tolerances_km=[10.0]), "scores"
else:
    points = pl.DataFrame({"series_id": [each // 2 for each in rows], "position": [each * 13 % 97 for each in rows]})
    predicted = points.with_columns(pl.col("position") + (pl.col("position") % 3 > 1) * 30)
    result, table = thresher.change_points(predictions=predicted, annotations=points, margin=2), "curve"
result.save("results")
with open_results(Path("results")) as connection:
    columns = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ?"
    comments = dict(connection.execute(columns, [f"{sys.argv[1]}_{table}"]).fetchall())
    metrics = connection.execute("SELECT DISTINCT value, lower FROM metrics WHERE metric = 'jaccard'").fetchall()
said = {name: value for name, value in result[table].to_dicts()[0].items() if isinstance(value, (int, float))}
texts = {"explain": str(result.explain("jaccard")), "plan": str(result.plan("jaccard", width=0.1))}
print(json.dumps({"row": said, "comment": comments["jaccard"], "metrics": metrics, **texts}))
"""

STATED = (
    Count("n_true", total="n_true"),
    Count("n_predicted", within="n_predicted", total="n_always"),
    Count("tp", within="tp"),
    Count("fp", formula="n_predicted - tp"),
    Count("fn", formula="n_true - tp"),
    Ratio("precision", ("tp",), ("fp",), "nothing predicted", over=("n_predicted",), reason="no_prediction"),
    Ratio("recall", ("tp",), ("fn",), "nothing true", reason="no_positive"),
    Ratio("f1", ("tp",), ("fp", "fn"), "neither", is_harmonic=True, over=("n_predicted", "n_true")),
)
COUNTED = ("n_true", "n_predicted", "n_always", "tp")
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([None, 0.0, 1.0]), *[st.integers(0, 3)] * 4),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS)
def test_counts_of_a_table_are_the_sums_of_those_of_replicates(rows: list[tuple[int | float | None, ...]]) -> None:
    names = ("grouping", "replicate", "threshold", *COUNTED)
    table = pl.DataFrame([("all", *row) for row in rows], schema=names, orient="row").cast({"threshold": pl.Float64})
    cube = Cube.of(table, None, (0.0, 1.0))
    frame = with_ratios(counted(STATED, cube), STATED).sort("threshold")
    ((_, group),) = cube.groups()
    outcomes = outcomes_of(STATED, group)
    for name, values in {**outcomes.others, "tp": outcomes.tp, "fp": outcomes.fp, "fn": outcomes.fn}.items():
        assert frame[name].to_list() == values.sum(axis=0).tolist()
    for row in frame.iter_rows(named=True):
        tp, fp, fn = (row[name] for name in ("tp", "fp", "fn"))
        expected = {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}
        assert {name: row[name] for name in ratios_of(STATED)} == {
            name: over / under if under else None for name, (over, under) in expected.items()
        }
        lacking = "no_prediction" if tp + fp == 0 else "no_positive" if tp + fn == 0 else None
        assert row["undefined"] == lacking


def test_a_table_may_state_no_outcome_of_a_kind() -> None:
    shares = (Count("held", total="held"), Count("missed", total="missed"))
    rows = {"grouping": ["all"] * 3, "replicate": [0, 1, 2], "threshold": [None] * 3}
    table = pl.DataFrame({**rows, "held": [3, 0, 5], "missed": [1, 2, 0]}).cast({"threshold": pl.Float64})
    ((_, group),) = Cube.of(table, None, None).groups()
    outcomes = outcomes_of(shares, group)
    assert outcomes.others["held"][:, 0].tolist() == [3, 0, 5]
    assert outcomes.tp[:, 0].tolist() == outcomes.fn[:, 0].tolist() == [0, 0, 0]


def test_a_stage_may_be_a_file_or_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    one_file = ModuleType("pipeline.stages.top_share")
    one_file.STAGE = STAGES[0].load()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, one_file.__name__, one_file)
    assert StageEntry("top_share", "").load() is STAGES[0].load()


@pytest.mark.parametrize(("beta", "value"), [(2, 10 / 23), (1, 4 / 8), (0.5, 2.5 / 4.25), (0, 2 / 3)])
def test_f_beta_weighs_misses_by_the_square_of_beta(beta: float, value: float) -> None:
    """By hand, (1 + β²) tp / ((1 + β²) tp + β² fn + fp), of 2 hits, 1 false alarm and 3 misses."""
    counts = pl.DataFrame({"tp": [2, 0], "fp": [1, 0], "fn": [3, 0]})
    assert counts.select(f_beta_of_row(beta)).to_series().to_list() == [pytest.approx(value, rel=1e-15), None]


FROM_COUNTS = "tp / (tp + fp + fn)", "nothing at all"
STATED_IN = {
    "geocoding": ("stages/geocoding/contract.py", "\nSTATED = (", STATEMENT, *FROM_COUNTS),
    "change_points": ("stages/change_points/contract.py", "\nSTATED = (", STATEMENT, *FROM_COUNTS),
    "before_after": (
        "metrics/before_after/formulas.py",
        "\nPAGE = (",
        ON_THE_PAGE,
        "tp / (m_after + positives - tp)",
        "as recall_raw",
    ),
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", STATED_IN)
def test_a_ratio_that_is_stated_once_is_found_everywhere(tmp_path: Path, kind: str) -> None:
    for name in ("pipeline", "thresher"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    file, where, statement, formula, when_null = STATED_IN[kind]
    page = tmp_path / "pipeline" / file
    before, start, after = page.read_text().partition(where)
    page.write_text(before + start + after.replace("\n)\n", f"\n{statement})\n", 1))
    done = subprocess.run(
        [sys.executable, "-c", ASK, kind],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    row = said["row"]
    assert row["jaccard"] == pytest.approx(row["tp"] / (row["tp"] + _wrong(row) + _missed(row)))
    assert row["jaccard_lower"] < row["jaccard"] < row["jaccard_upper"]
    assert said["metrics"] == [[row["jaccard"], row["jaccard_lower"]]]
    assert said["comment"] == f"share of all {formula.replace(' - ', ' − ')}; NULL: {when_null}"
    assert formula in said["explain"]
    assert "jaccard" in said["plan"]


def _wrong(row: dict[str, float]) -> float:
    return row["fp"] if "fp" in row else row["n_predicted"] - row["tp"]


def _missed(row: dict[str, float]) -> float:
    """Of before_after, the estimated positives are the true ones over recall."""
    if "recall_raw" in row:
        return row["tp"] / row["recall_raw"] - row["tp"]
    return row["fn"] if "fn" in row else row["n_true"] - row["tp"]
