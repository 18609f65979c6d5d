"""Freeze what the program says, and compare a later state of the code with it.

    python3 dev.py golden freeze DIR
    python3 dev.py golden compare DIR

For changes that must change no result: `freeze` writes every result table, warning, rendered SQL, catalog, summary,
help and exit code of a wide set of inputs into a folder outside the repository; `compare` makes them again and shows
every value and line that differs. Floats are compared bit for bit.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

import duckdb
import numpy as np
import polars as pl
from cases.reading import case_folders, case_name, prepare
from running import run_stages, stage_config
from stage_examples import EXAMPLES
from typer.testing import CliRunner

from pipeline.base.errors import ThresherError
from pipeline.cli.app import app
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import render_opened
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAGES = tuple(each.kind for each in EXAMPLES)
COMMANDS = (
    *("run", "check", "render", "query", "show", "report", "plot", "explain", "diff", "plan", "expire", "verify"),
    *("demo", "init", "trend", "backfill", *(kind.replace("_", "-") for kind in STAGES)),
)
CHANGING = (  # what differs from run to run, and what stands for it
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d[.\d]*)?(Z| UTC|\+00:00)?", "TIME"),
    (r"0000\d{4}-[0-9a-f]+", "RUN"),
    (r"(?<![.\w])(?=[0-9]*[a-f])[0-9a-f]{8,}", "HEX"),
    (r"\d+(\.\d+)? ?(s|ms|seconds)\b", "SECONDS"),
    (r"[\d.,]+ ?(kB|MB|GB|KiB|MiB|GiB|bytes)\b", "BYTES"),
)
MOST_LINES = 12  # of a text that differs

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "before_after": [
        {},
        {"uncertainty": "none"},
        {"uncertainty": "bootstrap", "resamples": 99, "cluster": "event_id"},
        {"compared": "timelines"},
        {"compared": "pairs"},
        {"boundary": ">", "window": {"before": "20h", "after": "25h", "gap": "2h", "closed": "left"}},
        {"recall_reference": {"rule": "max", "min_precision": 0.2, "recall": [0.8, 1.0]}},
        {"cluster": ["event_id", "article_id"]},
        {"operating_points": [{"min_precision": 0.5, "confidence": 0.9}, {"beta": 2}, {"threshold": 5.0}]},
    ],
    "threshold_sweep": [
        {},
        {"uncertainty": "none", "calibration": False},
        {"uncertainty": "none"},
        {"uncertainty": "bootstrap", "resamples": 99, "cluster": "item"},
        {"method": "binned", "thresholds": {"start": 0.0, "stop": 1.0, "count": 51}},
        {"thresholds": "distinct", "boundary": ">", "cluster": "item"},
        {"cluster": ["item", "rater"], "by": [["model"]]},
        {"thresholds": [0.2, 0.5], "bands": True},
        {"by": [[], ["model"], ["model", "topic"]]},
        {
            "operating_points": [
                {"min_precision": 0.6, "confidence": 0.9},
                {"max_alerts": 30},
                {"cost": {"fp": 1, "fn": 5}},
            ]
        },
        {"units": True, "cluster": "item"},
        {"class_sizes": "fixed"},
    ],
    "entity_recognition": [
        {},
        {"match": "text"},
        {"match": "overlap", "averages": ["micro", "macro"]},
        {"match": "overlap", "averages": ["semeval"]},
        {"match": "text_near", "assignment": "file_order"},
        {"uncertainty": "none"},
        {"thresholds": "distinct", "operating_points": [{"beta": 1}, {"min_precision": 0.5}]},
    ],
    "geocoding": [
        {},
        {"candidates": "closest", "tolerance_boundary": "<", "tolerances_km": [1, 50, 161]},
        {"distance": "geodesic"},
        {"missing_errors": "max_error", "uncertainty": "none"},
        {"uncertainty": "bootstrap", "resamples": 99},
    ],
    "change_points": [
        {},
        {"annotators": "union", "margin_boundary": "<="},
        {"annotators": "separate", "matching": "any"},
        {"annotators": "union", "matching": "roerich", "thresholds": "distinct"},
        {"annotators": "union", "matching": "ruptures"},
        {"uncertainty": "none"},
    ],
    "ranking": [
        {},
        {"ties": "expected"},
        {"no_relevant": "zero"},
        {"missing_queries": "zero"},
        {"uncertainty": "none"},
    ],
    "compare": [
        {},
        {"tests": ["paired_t", "randomization", "wilcoxon", "sign", "bootstrap_t"], "correction": "bh"},
        {"paired": False},
        {"tests": ["paired_t", "bayes"]},
    ],
}


def many_predictions() -> pl.DataFrame:
    """Three thousand scored rows with ties, weights, two parents and two groupings."""
    draw = np.random.default_rng(7)
    n = 3_000
    item, model = draw.integers(0, 150, n), draw.integers(0, 2, n)
    level = draw.normal(size=150)[item] + draw.normal(size=n) + 0.3 * model
    return pl.DataFrame(
        {
            "score": np.round(1 / (1 + np.exp(-level)), 3),
            "label": level + draw.normal(size=n) > 1,
            "weight": np.round(draw.uniform(0.5, 3, n), 2),
            "id": np.arange(n),
            "item": item,
            "rater": draw.integers(0, 40, n),
            "model": np.array(["a", "b"])[model],
            "topic": np.array(["x", "y", "z"])[draw.integers(0, 3, n)],
        }
    )


def many_units() -> pl.DataFrame:
    """Counts of 60 units of three systems."""
    draw = np.random.default_rng(11)
    unit, system = np.divmod(np.arange(180), 3)
    counts = {name: draw.integers(0, 6, 180) for name in ("tp", "fp", "fn")}
    return pl.DataFrame({"unit": unit, "system": np.array(["a", "b", "c"])[system], **counts})


def real_stages(root: Path) -> dict[str, dict[str, Any]]:
    """One or two stages on every set of the real data."""

    def at(name: str, **columns: Any) -> dict[str, Any]:  # noqa: ANN401
        return {"path": str(root / f"{name}.parquet"), "columns": columns}

    dutch, tcpd, ner = "before_after_dutch", "changepoints_tcpd", "ner_geowebnews"
    pairs = at(f"{dutch}/pairs", score="weight", lag_hours="hourdiff")
    grid = {"start": 0.1, "stop": 60.0, "count": 200}
    window = {"before": "168h", "after": "72h"}
    stages: dict[str, dict[str, Any]] = {
        "dutch": {
            "kind": "before_after",
            "pairs": pairs,
            "events": at(f"{dutch}/events", complete_window="complete_window"),
            "thresholds": grid,
            "window": window,
            "by": ["source"],
            "lag_thresholds": [10],
        },
        "dutch_timelines": {
            "kind": "before_after",
            "pairs": at(f"{dutch}/pairs", score="weight", lag_hours=False),
            "events": at(f"{dutch}/events"),
            "articles": at(f"{dutch}/articles"),
            "compared": "timelines",
            "thresholds": grid,
            "window": window,
        },
        "predictions": {
            "kind": "threshold_sweep",
            "predictions": at("predictions_real/predictions", id="id"),
            "by": [["dataset", "model", "group"], ["dataset", "model"]],
        },
        "mentions": {
            "kind": "entity_recognition",
            "gold": at(f"{ner}/gold") | {"where": "is_toponym"},
            "predicted": at(f"{ner}/predictions"),
            "documents": at(f"{ner}/documents"),
            "match": "overlap",
            "by": [["system"]],
        },
        "points": {
            "kind": "change_points",
            "annotations": at(f"{tcpd}/annotations", position="change_point"),
            "predictions": at(f"{tcpd}/predictions", position="change_point"),
            "runs": at(f"{tcpd}/runs") | {"where": "status = 'SUCCESS'"},
            "coders": at(f"{tcpd}/annotators"),
            "series": at(f"{tcpd}/series"),
            "margin": 5,
            "annotators": "tcpd",
            "by": [["method"]],
        },
        "points_scored": {
            "kind": "change_points",
            "annotations": at(f"{tcpd}/annotations", position="change_point"),
            "predictions": at(f"{tcpd}/scored_predictions", position="change_point"),
            "series": at(f"{tcpd}/series"),
            "margin": 10,
            "by": [["method"]],
        },
    }
    for name in ("geocoding_geowebnews", "geoparsing_lgl"):
        columns = {"latitude": "lat", "longitude": "lon", "text": "toponym"}
        stages[name] = {
            "kind": "geocoding",
            "gold": at(f"{name}/gold", mention_id="toponym_id", **columns),
            "predicted": at(f"{name}/predictions", **columns),
            "match": "text_near",
            "by": [["system"]],
        }
    for name in ("trec", "rag"):
        ranking = at(f"ranking_trec/{name}_ranking", relevance=False)
        stages[name] = {"kind": "ranking", "ranking": ranking, "relevance": at(f"ranking_trec/{name}_qrels")}
    return stages


@dataclass
class Frozen:
    """What one scene said: tables and texts by name."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write tables as Parquet and texts as they are."""
        folder.mkdir(parents=True)
        for name, frame in self.tables.items():
            frame.write_parquet(folder / f"{name.replace('/', ' ')}.parquet")
        for name, text in self.texts.items():
            (folder / f"{name.replace('/', ' ')}.txt").write_text(text, encoding="utf-8")


def steady(text: str, folder: Path) -> str:
    """A text without what differs from run to run."""
    text = text.replace(str(folder), "FOLDER").replace(str(Path(__file__).parents[1]), "ROOT")
    for pattern, stand_in in CHANGING:
        text = re.sub(pattern, stand_in, text)
    return text


def in_memory(document: Any, folder: Path, *, rendered: bool) -> Frozen:  # noqa: ANN401 - a config or a dict
    """Tables, warnings, sentence and, if wanted, SQL of a config that is not published; or its error."""
    frozen = Frozen()
    try:
        run = run_stages(document)
        for result in run.stages:
            sentence = "" if result.summary is None else result.summary.sentence
            frozen.texts[f"{result.name} says"] = "\n".join([sentence, *result.warnings])
            for table, stage, *_ in run.__dict__.get("_tables", ()):
                if stage == result.name:
                    frozen.tables[f"{table.name} {stage}"] = run.frame(table.name, stage)  # type: ignore[attr-defined]
        if not frozen.tables:
            for path in sorted(run.path.rglob("*.parquet")):
                frozen.tables[str(path.relative_to(run.path))] = pl.read_parquet(path)
        if rendered:
            config = document if not isinstance(document, dict) else parse_config(document, base=folder)
            for opened in [open_inputs(config, stage) for stage in config.stages if not stage.upstream]:
                for dialect in ("duckdb", "spark"):
                    frozen.texts[f"{opened.name} {dialect}"] = render_opened(opened, dialect=dialect)
    except ThresherError as error:
        frozen.texts["error"] = f"{error.code} {error}"
    frozen.texts = {name: steady(text, folder) for name, text in frozen.texts.items()}
    return frozen


def example(name: str, number: int, folder: Path) -> Frozen:
    """One stage on its example, or on more rows, with some keys."""
    (found,) = (each for each in EXAMPLES if each.kind == name)
    frames, keys = dict(found.frames), found.keys | VARIANTS[name][number]
    if name == "threshold_sweep":
        frames = {"predictions": many_predictions()}
        keys = {"by": ["model"], "thresholds": {"start": 0.0, "stop": 1.0, "count": 21}} | VARIANTS[name][number]
    elif name == "compare":
        frames = {"units": many_units()}
    elif name == "before_after" and "compared" in keys:
        frames["events"] = frames["events"].drop("n_before", "n_after", "complete_window")
    maps = {key: {"columns": {each: each for each in fields}} for key, fields in found.mapped_only.items()}
    maps = {key: {"columns": {c: c for c in each["columns"] if c in frames[key].columns}} for key, each in maps.items()}
    return in_memory(stage_config(folder, name, frames, **maps, **keys), folder, rendered=True)


def case(folder_of_case: Path, folder: Path) -> Frozen:
    """A case of tests/cases."""
    return in_memory(prepare(folder_of_case, folder), folder, rendered=False)


def real(name: str, folder: Path) -> Frozen:
    """A stage on real data."""
    stage = real_stages(Path(os.environ["THRESHER_REAL_DATA"]))[name]
    return in_memory({"output": str(folder / "results"), "stages": [stage]}, folder, rendered=False)


def spoken(frozen: Frozen, folder: Path, *words: str) -> None:
    """Keep exit code and output of a command."""
    done = CliRunner().invoke(app, list(words))
    name = " ".join(word for word in words if not word.startswith(str(folder)))
    shown = [f"exit {done.exit_code}", done.stdout, done.stderr]
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        shown += traceback.format_exception(done.exception)[-2:]
    frozen.texts[name or "thresher"] = steady("\n".join(shown), folder)


def published(folder: Path) -> Frozen:
    """The demo, published: its tables, catalog, and what commands say of it."""
    frozen = Frozen()
    spoken(frozen, folder, "demo", "--quiet", "--output", str(folder / "demo"))
    results = folder / "demo" / "results"
    run = max((results / "runs").iterdir())
    for path in sorted(run.rglob("*.parquet")):
        frame = pl.read_parquet(path)
        frozen.tables[str(path.relative_to(run))] = frame.drop("run_id", "published_at", "seconds", strict=False)
    with duckdb.connect(str(results / "catalog.duckdb"), read_only=True) as catalog:
        for kind, columns in {"tables": "table_name", "columns": "table_name, column_name, data_type"}.items():
            query = f"SELECT schema_name, {columns}, comment FROM duckdb_{kind}() ORDER BY ALL"  # noqa: S608 - of our own
            rows = catalog.execute(query).fetchall()
            frozen.texts[f"catalog {kind}"] = steady("\n".join(map(str, rows)), folder)
    shows: list[tuple[str, ...]] = [("show",), ("show", "--methods"), ("show", "--format", "markdown"), ("verify",)]
    for words in shows:
        spoken(frozen, folder, words[0], str(results), *words[1:])
    groups = {"ranking": "system=engine", "change_points": "", "geocoding": "system=gazetteer"}
    for found in EXAMPLES:
        group = ["-g", groups[found.kind]] if groups.get(found.kind) else []
        for words in (("explain", str(results), found.kind), ("plan", str(results), found.kind)):
            spoken(frozen, folder, *words, *group)
    spoken(frozen, folder, "render", str(folder / "demo" / "demo.toml"))
    return frozen


def words(folder: Path) -> Frozen:
    """Helps, starter configs, and the exit codes of what is wrong in a config."""
    frozen = Frozen()
    spoken(frozen, folder, "--help")
    for command in COMMANDS:
        spoken(frozen, folder, command, "--help")
    for config in sorted(Path("configs").glob("*.toml")):
        spoken(frozen, folder, "check", str(config))
    for found in EXAMPLES:
        spoken(frozen, folder, "init", found.kind)
    frames = {"predictions": many_predictions()}
    for key, value in {"thresholds": [0.5, 0.2], "by": ["nothing"], "colour": 1, "replicates": -1}.items():
        document = stage_config(folder / key, "threshold_sweep", frames, **{key: value})
        frozen.texts |= {f"wrong {key} {name}": text for name, text in in_memory_error(document, folder).items()}
    return frozen


def in_memory_error(document: dict[str, Any], folder: Path) -> dict[str, str]:
    """What a config that cannot run says."""
    return in_memory(document, folder, rendered=False).texts


def scenes() -> Iterator[tuple[str, Callable[..., Frozen], tuple[Any, ...]]]:
    """Every scene by name: the longest first."""
    yield "published", published, ()
    yield "words", words, ()
    if os.environ.get("THRESHER_REAL_DATA"):
        for name in real_stages(Path()):
            yield f"real/{name}", real, (name,)
    for kind, variants in VARIANTS.items():
        for number in range(len(variants)):
            yield f"examples/{kind}-{number}", example, (kind, number)
    for folder in case_folders():
        yield f"cases/{case_name(folder)}", case, (folder,)


def freeze_scene(name: str, make: Callable[..., Frozen], arguments: tuple[Any, ...], target: Path) -> str:
    """Write what one scene says, or the trace of what went wrong, which is then compared too."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            frozen = make(*arguments, Path(folder))
        except Exception:  # noqa: BLE001 - whatever it is, it is part of what the program does
            frozen = Frozen(texts={"broken": steady(traceback.format_exc(), Path(folder))})
    frozen.write(target / name)
    return f"{name}: broken" if "broken" in frozen.texts else ""


def freeze(target: Path) -> None:
    """Write all scenes, on all cores."""
    if target.exists() and any(target.iterdir()):
        sys.exit(f"{target} is not empty: name a new folder")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        work = [pool.submit(freeze_scene, *scene, target) for scene in scenes()]
        for done in as_completed(work):
            if said := done.result():
                print(said)


def compare(old: Path, new: Path) -> int:
    """Print what differs between two frozen folders and return how many outputs do."""
    names = sorted({str(path.relative_to(side)) for side in (old, new) for path in side.rglob("*.*") if path.is_file()})
    differing = 0
    for name in names:
        if said := difference(old / name, new / name):
            differing += 1
            print(f"{name}\n{said}")
    print(f"{len(names) - differing:,} outputs are equal, {differing:,} differ")
    return differing


def difference(old: Path, new: Path) -> str:
    """How two outputs differ; nothing where they do not."""
    if not (old.is_file() and new.is_file()):
        return "    only before" if old.is_file() else "    only now"
    if old.read_bytes() == new.read_bytes():
        return ""
    if old.suffix == ".txt":
        before, now = (path.read_text(encoding="utf-8").splitlines() for path in (old, new))
        shown = [line[:300] for line in difflib.unified_diff(before, now, lineterm="", n=0)][2:]
        return "\n".join(f"    {line}" for line in shown[:MOST_LINES])
    return _tables_differ(pl.read_parquet(old), pl.read_parquet(new))


def _tables_differ(old: pl.DataFrame, new: pl.DataFrame) -> str:
    if old.schema != new.schema:
        changed = {*map(str, old.schema.items())} ^ {*map(str, new.schema.items())}
        return f"    columns: {', '.join(sorted(changed))}"
    if old.height != new.height:
        return f"    {old.height:,} rows before, {new.height:,} now"
    shown = []
    for name in old.columns:
        rows = [row for row, same in enumerate(old[name].eq_missing(new[name])) if not same]
        if rows:
            shown.append(f"    {name}: {len(rows)} rows, first {rows[0]}: {old[name][rows[0]]} → {new[name][rows[0]]}")
    return "\n".join(shown[:MOST_LINES])


def main() -> int:
    """Run `freeze DIR`, `compare DIR` or, for two frozen folders, `compare DIR DIR`."""
    match sys.argv[1:]:
        case ["freeze", target]:
            freeze(Path(target))
            return 0
        case ["compare", old]:
            with tempfile.TemporaryDirectory() as target:
                freeze(Path(target) / "now")
                return min(1, compare(Path(old), Path(target) / "now"))
        case ["compare", old, new]:
            return min(1, compare(Path(old), Path(new)))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
