"""The table before_after_adjusted: by a loop over all pairs, from rows, from timelines and from given numbers."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after

from pipeline.base.dialect import render
from pipeline.base.errors import ConfigError, DataError
from pipeline.base.sql_files import expand, load
from pipeline.metrics.before_after.sensitivity import Standardised
from pipeline.stages.before_after.groups import _adjusted_estimates

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

WINDOW = {"before": "48h", "after": "24h", "gap": "2h"}
THRESHOLDS = [0.3, 0.6, 0.9]
START = dt.datetime(1969, 12, 20, tzinfo=dt.UTC)
HOURS = 700


class Archive:
    """Events and articles in whole hours, from before 1970 to after it, with attributes on all sides."""

    def __init__(self, seed: int = 1, n_events: int = 20) -> None:
        rng = np.random.default_rng(seed)
        event_hours, article_hours = rng.integers(60, HOURS - 40, n_events), rng.integers(0, HOURS, 600)
        article_hours[:2] = 0, HOURS
        self.lag = article_hours[None, :] - event_hours[:, None]
        event, article = np.nonzero((self.lag >= -55) & (self.lag <= 30))
        score = rng.integers(0, 100, len(event)) / 100
        true = (self.lag[event, article] >= 0) & (rng.random(len(event)) < 0.4)
        score = np.where(true, rng.integers(85, 100, len(event)) / 100, score)
        times = [START + dt.timedelta(hours=int(hour)) for hour in article_hours]
        moments = [START + dt.timedelta(hours=int(hour)) for hour in event_hours]
        self.pairs = pl.DataFrame(
            {
                "event_id": event,
                "article_id": article,
                "score": score,
                "lag_hours": self.lag[event, article].astype(float),
                "section": [["a", "b", None][each % 3] for each in article],
            }
        )
        self.events = pl.DataFrame({"event_id": range(n_events), "event_time": moments, "kind": ["x", "y"] * 10})
        self.articles = pl.DataFrame(
            {"article_id": range(600), "article_time": times, "medium": ["m", None, "n"] * 200}
        )
        self.volumes = self._volumes([time.date() for time in times])

    @staticmethod
    def _volumes(days: list[dt.date]) -> dict[dt.date, int]:
        sizes = Counter(days)
        lower = {day: sum(other < size for other in sizes.values()) for day, size in sizes.items()}
        return {day: 1 + 4 * count // len(sizes) for day, count in lower.items()}

    def label(self, name: str, event: int, article: int) -> object:
        time = self.articles["article_time"][article]
        found = {
            "weekday": time.weekday(),
            "hour": time.hour,
            "volume": self.volumes[time.date()],
            "kind": "xy"[event % 2],
            "medium": self.articles["medium"][article],
            "section": ["a", "b", None][article % 3],
        }
        return found[name]

    def expected(self, strata: list[str], threshold: float, kinds: str) -> tuple[int, int, float]:
        """Number of strata, pairs in unsupported ones, and false positives, by a loop over all pairs."""
        n_before, n_after, m_before = Counter[Any](), Counter[Any](), Counter[Any]()
        for event, article, score, lag in self.pairs.select("event_id", "article_id", "score", "lag_hours").rows():
            stratum = tuple(self.label(name, event, article) for name in strata)
            if "xy"[event % 2] not in kinds:
                continue
            if -48 <= lag < -2:
                n_before[stratum] += 1
                m_before[stratum] += score >= threshold
            elif 0 <= lag <= 24:
                n_after[stratum] += 1
        unsupported = sum(number for stratum, number in n_after.items() if not n_before[stratum])
        fp = sum(m_before[s] * n_after[s] / n_before[s] for s in n_before if n_before[s])
        return len(set(n_before) | set(n_after)), unsupported, fp

    def frames(self, compared: str) -> dict[str, pl.DataFrame]:
        stored = self.pairs.filter(pl.col("score") > 0.1)
        if compared == "pairs":
            return {"pairs": self.pairs, "events": self.events, "articles": self.articles}
        if compared == "timelines":
            return {"pairs": stored, "events": self.events, "articles": self.articles}
        before, after = (self.lag >= -48) & (self.lag < -2), (self.lag >= 0) & (self.lag <= 24)
        events = self.events.with_columns(n_before=pl.Series(before.sum(axis=1)), n_after=pl.Series(after.sum(axis=1)))
        return {"pairs": stored, "events": events.drop("event_time")}


def run(folder: Path, archive: Archive, compared: str, **keys: Any) -> Run:  # noqa: ANN401 - keys of a config
    options = {"thresholds": THRESHOLDS, "window": WINDOW, "compared": compared}
    return run_before_after(folder, archive.frames(compared), **(options | keys))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("compared", "strata"),
    [
        ("pairs", ["weekday"]),
        ("pairs", ["hour", "section"]),
        ("pairs", ["volume", "kind", "medium"]),
        ("timelines", ["weekday", "medium"]),
        ("timelines", ["volume", "kind"]),
        ("timelines", ["hour"]),
        ("events", ["kind"]),
    ],
)
def test_false_positives_are_those_of_a_loop_over_all_pairs(tmp_path: Path, compared: str, strata: list[str]) -> None:
    archive = Archive()
    by = [] if strata == ["hour"] else ["kind"]
    result = run(tmp_path, archive, compared, strata=strata, by=[[], by] if by else [[]])
    table = read_table(result, "before_after_adjusted")
    assert table.height == (3 if by else 1) * len(THRESHOLDS)
    plain = read_table(result, "before_after_estimates")
    references = {row["kind"] if by else None: row for row in plain.filter("is_reference").to_dicts()}
    for row, other in zip(table.to_dicts(), plain.to_dicts(), strict=True):
        kinds = row.get("kind") or "xy"
        number, unsupported, expected = archive.expected(strata, row["threshold"], kinds)
        assert (row["n_strata"], row["n_after_unsupported"]) == (number, unsupported)
        if unsupported:
            assert (row["fp_adjusted"], row["undefined"]) == (None, "unsupported_stratum")
            continue
        # the number of positives, estimated at the reference with the adjusted rate there
        reference, n_after = references[row.get("kind")], other["n_after"]
        at_reference = archive.expected(strata, reference["threshold"], kinds)[2]
        positives = (reference["m_after"] - at_reference) / (1 - at_reference / n_after)
        fp = expected / n_after * (n_after - positives)
        tp = other["m_after"] - fp
        precision, recall = tp / other["m_after"], min(tp / positives, 1)
        assert row["fp_adjusted"] == pytest.approx(fp, rel=1e-12)
        assert row["fpr_adjusted"] == pytest.approx(expected / n_after, rel=1e-12)
        if tp >= 0:
            assert row["recall_adjusted"] == pytest.approx(recall, rel=1e-9)
            assert row["f1_adjusted"] == pytest.approx(2 * precision * recall / (precision + recall), rel=1e-9)
        assert row["precision_adjusted"] == pytest.approx(precision, rel=1e-9, abs=1e-12)
        if row["fpr_adjusted_lower"] is not None:
            assert row["fpr_adjusted_lower"] <= row["fpr_adjusted"] <= row["fpr_adjusted_upper"]
            assert row["precision_adjusted_lower"] <= row["precision_adjusted"] <= row["precision_adjusted_upper"]
        else:
            assert row["undefined_interval"] == "thin_stratum"


@pytest.mark.wide
def test_most_of_the_cases_above_are_supported(tmp_path: Path) -> None:
    table = read_table(run(tmp_path, Archive(), "timelines", strata=["weekday"]), "before_after_adjusted")
    assert table["undefined_interval"].null_count() == len(THRESHOLDS)
    assert table["fp_adjusted"].null_count() == 0


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("origin", ["articles", "pairs", "events"])
def test_the_time_of_an_article_is_taken_from_wherever_it_is(tmp_path: Path, origin: str) -> None:
    archive = Archive()
    frames = archive.frames("pairs")
    if origin == "pairs":
        frames["pairs"] = frames["pairs"].join(frames["articles"].select("article_id", "article_time"), on="article_id")
        del frames["articles"]
    elif origin == "events":
        del frames["articles"]
        frames["pairs"] = frames["pairs"].drop("article_id")
    keys: dict[str, Any] = {"thresholds": THRESHOLDS, "window": WINDOW, "compared": "pairs"}
    frames["events"] = frames["events"].with_columns(complete_window=pl.lit(value=True))
    table = read_table(run_before_after(tmp_path, frames, strata=["hour", "weekday"], **keys), "before_after_adjusted")
    number, unsupported, _ = archive.expected(["hour", "weekday"], 0.3, "xy")
    assert table.select("n_strata", "n_after_unsupported").unique().rows() == [(number, unsupported)]


def test_one_stratum_gives_the_plain_estimates(tmp_path: Path) -> None:
    archive = Archive()
    archive.events = archive.events.with_columns(kind=pl.lit("x"))
    result = run(tmp_path, archive, "pairs", strata=["kind"], cluster="event_id")
    table, plain = (read_table(result, f"before_after_{name}") for name in ("adjusted", "estimates"))
    for name in ("fpr", "fp", "precision", "recall", "f1"):
        assert table[f"{name}_adjusted"].to_list() == pytest.approx(plain[name].to_list(), rel=1e-9)
    for name in ("fpr", "precision"):
        for side in ("lower", "upper"):
            limits = table[f"{name}_adjusted_{side}"].to_list()
            assert limits == pytest.approx(plain[f"{name}_{side}"].to_list(), rel=1e-9, abs=1e-12)
    assert table["n_strata"].unique().to_list() == [1]


@pytest.mark.wide
def test_without_strata_the_table_has_no_row_and_without_replicates_no_interval(tmp_path: Path) -> None:
    assert read_table(run(tmp_path / "a", Archive(), "pairs"), "before_after_adjusted").is_empty()
    result = run(tmp_path / "b", Archive(), "pairs", strata=["kind"], uncertainty="none")
    table = read_table(result, "before_after_adjusted")
    assert table.select("fpr_adjusted_lower", "undefined_interval").unique().rows() == [(None, "none")]
    assert table["fpr_adjusted"].null_count() == 0


@pytest.mark.wide
def test_distinct_thresholds_and_an_open_boundary_count_as_the_plain_ones(tmp_path: Path) -> None:
    archive = Archive()
    for boundary in (">=", ">"):
        result = run(
            tmp_path / boundary, archive, "pairs", strata=["weekday"], thresholds="distinct", boundary=boundary
        )
        table = read_table(result, "before_after_adjusted")
        n_after = read_table(result, "before_after_estimates")["n_after"][0]
        for row in table.sample(5, seed=1).to_dicts():
            threshold = row["threshold"] if boundary == ">=" else np.nextafter(row["threshold"], 2)
            expected = archive.expected(["weekday"], threshold, "xy")[2]
            assert row["fpr_adjusted"] == pytest.approx(expected / n_after, rel=1e-12)


@pytest.mark.parametrize(
    ("compared", "strata", "words"),
    [
        ("events", ["weekday"], "'weekday' is one of articles, but the compared pairs are given per event"),
        ("events", ["section"], "'section' is a column of pairs, but the compared pairs are given per event"),
        ("timelines", ["section"], "'section' is a column of pairs, but the compared pairs are counted"),
    ],
)
def test_strata_whose_compared_pairs_are_not_known_are_refused(
    tmp_path: Path, compared: str, strata: list[str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, Archive(), compared, strata=strata)
    assert words in str(caught.value)


def test_strata_that_the_inputs_lack_are_refused(tmp_path: Path) -> None:
    archive = Archive()
    pairs = {"pairs": archive.pairs}
    keys: dict[str, Any] = {"thresholds": THRESHOLDS, "compared": "pairs"}
    for strata, words in (
        (["volume"], "needs the input articles"),
        (["hour"], "times of the articles are not known"),
        (["colour"], "strata: no input has a column 'colour'"),
    ):
        with pytest.raises(DataError, match=words):
            run_before_after(tmp_path, pairs, strata=strata, **keys)
    frames = archive.frames("pairs")
    frames["pairs"] = frames["pairs"].drop("article_id")
    with pytest.raises(DataError, match="need article_id in pairs"):
        run_before_after(tmp_path, frames, strata=["medium"], **keys)
    with pytest.raises(ConfigError, match="name each stratum once"):
        run_before_after(tmp_path, pairs, strata=["hour", "hour"], **keys)


def test_articles_that_are_not_listed_are_told(tmp_path: Path) -> None:
    archive = Archive()
    archive.articles = archive.articles.filter((pl.col("article_id") % 7 != 3) | (pl.col("article_id") < 2))
    with pytest.raises(DataError, match="have an article that is listed in articles"):
        run(tmp_path, archive, "pairs", strata=["weekday"])


@pytest.mark.parametrize(
    ("sizes", "quartiles"),
    [([1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 2, 2, 3, 3, 4, 4]), ([5, 5, 5, 9], [1, 1, 1, 4]), ([2, 1], [3, 1])],
)
def test_days_with_fewer_articles_are_in_lower_quartiles(sizes: list[int], quartiles: list[int]) -> None:
    times = [24 * 3_600_000_000 * day + 1 for day, size in enumerate(sizes) for _ in range(size)]
    articles = pl.DataFrame({"article_time": times})
    with duckdb.connect(":memory:") as connection:
        connection.register("articles", articles.to_arrow())
        rows = connection.execute(render(expand(load("before_after/volumes"), ()))).fetchall()
    assert sorted(rows) == list(enumerate(quartiles))


@pytest.mark.parametrize(("n_before", "reason"), [(0.0, "no_before"), (7.0, "unsupported_stratum")])
def test_without_support_the_reason_tells_whether_anything_was_compared_before(n_before: float, reason: str) -> None:
    unsupported = Standardised(np.zeros(2), np.zeros((0, 2)), n_strata=1, n_unsupported=3)
    counts = [np.array([5.0, 2.0]), np.array(n_before), np.array(9.0)]
    assert _adjusted_estimates(unsupported, counts, 0, 1.0)[1].tolist() == [reason, reason]
