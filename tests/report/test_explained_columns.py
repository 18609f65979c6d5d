"""`explain` takes any number of the tables of groups, also those that have no formula of counts."""

from __future__ import annotations

import polars as pl
import pytest
from running import stage_config
from stage_examples import EXAMPLES

import pipeline
from pipeline.base.errors import UsageError
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Explanation, Shown, explain
from pipeline.report.explanation import blocks_of, other_measures
from pipeline.report.published import PublishedRun, latest_run

KINDS = ("before_after", "ranking", "threshold_sweep")
NUMBERS_ALONE = Shown(rows=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PublishedRun:
    folder = tmp_path_factory.mktemp("explained")
    stages = []
    for example in (each for each in EXAMPLES if each.kind in KINDS):
        frames, keys = dict(example.frames), dict(example.keys)
        if example.kind == "before_after":
            checked = frames["pairs"].filter(pl.col("lag_hours") >= 0, pl.col("score") >= 5, pl.col("event_id") != "e5")
            keys["audit"] = {"threshold": 5.0, "size": 20, "seed": 1}
            frames["audited"] = checked.select("event_id", "article_id", is_match=pl.col("article_id") % 3 > 0)
        if example.kind == "threshold_sweep":
            keys |= {
                "by": [[], ["model"]],
                "prevalence": [0.1, 0.2],
                "operating_points": [{"threshold": 1.0}, {"threshold": 1.5}],
            }
        stages += stage_config(folder / example.kind, example.kind, frames, **keys)["stages"]
    pipeline.run({"output": str(folder / "results"), "stages": stages})
    return latest_run(folder / "results")


def of_number(run: PublishedRun, stage: str, metric: str, *group: str, threshold: float | None = None) -> Explanation:
    return explain(run, stage, Wish(metric, threshold, group), NUMBERS_ALONE)


def test_a_number_of_checked_matches_is_explained(run: PublishedRun) -> None:
    audit = run.chosen(["before_after"])[0].tables["before_after_audit"].filter(pl.col("grouping") == "all")
    for row in audit.iter_rows(named=True):
        explained = of_number(run, "before_after", "precision_audited", threshold=row["threshold"])
        assert (explained.value, explained.lower) == (row["precision_audited"], row["precision_audited_lower"])
        assert explained.meaning == "n_right / n_audited, or what a sheet says by how it was drawn"
        assert explained.threshold == row["threshold"]
    assert audit.height > 0


def test_a_threshold_that_the_table_lacks_is_the_next_one_and_that_is_said(run: PublishedRun) -> None:
    audit = run.chosen(["before_after"])[0].tables["before_after_audit"].filter(pl.col("grouping") == "all")
    curve = run.chosen(["before_after"])[0].tables["before_after_estimates"]
    lacking = sorted({*curve["threshold"].drop_nulls()} - {*audit["threshold"]})
    assert lacking
    explained = of_number(run, "before_after", "n_right", threshold=lacking[0])
    lowest = audit.sort("threshold").row(0, named=True)
    assert (explained.threshold, explained.value) == (lowest["threshold"], lowest["n_right"])
    assert any("its table has no row at" in note for note in explained.notes)


def test_a_number_of_operating_points_has_the_threshold_of_its_row(run: PublishedRun) -> None:
    points = run.chosen(["threshold_sweep"])[0].tables["threshold_sweep_operating_points"]
    totals = points.filter(pl.col("grouping") == "all")
    assert totals["threshold"].n_unique() > 1
    for point in totals.iter_rows(named=True):
        explained = of_number(run, "threshold_sweep", "threshold", f"criterion={point['criterion']}")
        assert explained.value == explained.threshold == point["threshold"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_table_of_groups_is_explained_or_its_table_was_not_made(run: PublishedRun, kind: str) -> None:
    stage = run.chosen([kind])[0]
    for name, measure in other_measures(stage).items():
        table = stage.tables.get(measure.table)
        if table is None or table.is_empty():
            with pytest.raises(UsageError, match=r"did not make the table|has no row"):
                of_number(run, kind, name)
            continue
        explained = of_number(run, kind, name)
        assert explained.value in table[name].to_list()
        assert list(blocks_of(explained))


def test_rows_behind_a_number_that_single_queries_have_not_are_shown(run: PublishedRun) -> None:
    explained = explain(run, "ranking", Wish("n_queries"), Shown())
    assert not next(section for section in explained.sections if section.name == "worst_queries").rows.is_empty()


def test_columns_of_single_rows_and_names_that_no_table_has_are_refused(run: PublishedRun) -> None:
    for name in ("draw", "lag_hours", "precison_audited"):
        with pytest.raises(UsageError, match="has no metric") as refused:
            of_number(run, "before_after", name)
        assert "every number in its tables of groups" in str(refused.value)
    assert "Did you mean `precision_audited`" in str(refused.value)
