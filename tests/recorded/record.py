"""Record what other tools print for random inputs, beside which `test_recorded.py` holds ours.

    python tests/recorded/record.py roerich|ruptures|nervaluate|ir_measures|dcurves
    python tests/recorded/record.py tcpdbench METRICS.PY COMMIT
    python tests/recorded/record.py trec_eval BINARY VERSION …

Run it by hand where the tools are installed: roerich, ruptures, nervaluate, dcurves and ir-measures with cwl-eval from
PyPI (its gdeval needs Perl), the file `analysis/scripts/metrics.py` of TCPDBench, and `trec_eval` built from its
sources. It writes `<tool>.json` beside itself: the version, the inputs and the output. The inputs depend on the seed
alone.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

SEED = 20261122
SERIES, LENGTH = 60, 60
MARGINS = (2, 5)
QUERIES, DOCUMENTS, DEEPEST = 40, 24, 16
MEASURES = ("map", "Rprec", "bpref", "recip_rank", "P", "recall", "iprec_at_recall")
BY_PROVIDER = {
    "pytrec_eval": (
        *("nDCG", "nDCG@5", "nDCG@10", "AP", "AP@5", "AP(rel=2)", "AP(rel=3)@10", "P@5", "P(rel=2)@10", "R@5"),
        *("R(rel=2)@10", "RR", "RR(rel=2)", "Success@1", "Success@5", "Success(rel=3)@5"),
    ),
    "gdeval": ("nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@10", "ERR@5", "ERR@20"),  # with five digits
    "judged": ("Judged@5", "Judged@10"),
    "cwl_eval": ("RBP(rel=1)", "RBP(rel=2,p=0.5)", "RBP(rel=1,p=0.95)"),
}
BY_RISING_ID = {"judged": ("Judged@5", "Judged@10"), "msmarco": ("RR@1", "RR@5", "RR(rel=2)@10")}
TEXTS = 40
TYPES = ("place", "person")


def points(rng: random.Random, fewest: int, most: int) -> list[int]:
    """Distinct positions in ascending order, none of them at an end of the series."""
    return sorted(rng.sample(range(1, LENGTH), rng.randint(fewest, most)))


def roerich() -> dict[str, Any]:
    """Precision and recall of its code, with its window on both sides closed."""
    score = import_module("roerich.metrics").precision_recall_scores
    rng, rows = random.Random(SEED), []  # noqa: S311 - no secret
    for _ in range(SERIES):
        true, predicted = points(rng, 1, 6), points(rng, 1, 9)
        values = {str(window): [float(value) for value in score(true, predicted, window)] for window in MARGINS}
        rows.append({"true": true, "predicted": predicted, "precision_recall": values})
    return {"version": metadata.version("roerich"), "series": rows}


def ruptures() -> dict[str, Any]:
    """Precision and recall of its code, whose margin is open; its lists end with the length of the series."""
    score = import_module("ruptures.metrics").precision_recall
    rng, rows = random.Random(SEED + 1), []  # noqa: S311 - no secret
    for _ in range(SERIES):
        true, predicted = points(rng, 1, 6), points(rng, 1, 9)
        lists = [*true, LENGTH], [*predicted, LENGTH]
        values = {str(margin): [float(value) for value in score(*lists, margin)] for margin in MARGINS}
        rows.append({"true": true, "predicted": predicted, "precision_recall": values})
    return {"version": metadata.version("ruptures"), "series": rows}


def tcpdbench(path: str, commit: str) -> dict[str, Any]:
    """F-measure, precision, recall and covering of its `metrics.py`, with several annotators."""
    spec = util.spec_from_file_location("tcpdbench_metrics", path)
    if spec is None or spec.loader is None:
        raise SystemExit(path)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng, rows = random.Random(SEED + 2), []  # noqa: S311 - no secret
    for _ in range(SERIES):
        annotations = {str(number): points(rng, 0, 5) for number in range(rng.randint(1, 4))}
        predicted = points(rng, 0, 8)
        values = {
            str(margin): module.f_measure(annotations, predicted, margin=margin, return_PR=True) for margin in MARGINS
        }
        covering = module.covering(annotations, predicted, LENGTH)
        row = {"annotations": annotations, "predicted": predicted, "f1_precision_recall": values, "covering": covering}
        rows.append(row)
    return {"version": commit, "length": LENGTH, "series": rows}


def nervaluate() -> dict[str, Any]:
    """Correct, possible and actual mentions, of the same span and type (strict) or of the same span (exact)."""
    rng, texts = random.Random(SEED + 3), []  # noqa: S311 - no secret
    for _ in range(TEXTS):
        gold = _mentions(rng, 5)
        kept = [dict(mention) for mention in gold if rng.random() < 0.7]
        for mention in kept:
            if rng.random() < 0.2:
                mention["end"] += 1
            if rng.random() < 0.2:
                mention["label"] = rng.choice(TYPES)
        texts.append((gold, kept + [mention for mention in _mentions(rng, 2) if _is_apart(mention, gold)]))
    evaluator = import_module("nervaluate").Evaluator(
        *map(list, zip(*texts, strict=True)), tags=list(TYPES), loader="dict"
    )
    overall = evaluator.evaluate()["overall"]
    counts = {
        name: {field: getattr(overall[name], field) for field in ("correct", "actual", "possible")}
        for name in ("strict", "exact")
    }
    rows = [{"gold": gold, "predicted": predicted} for gold, predicted in texts]
    return {"version": metadata.version("nervaluate"), "documents": rows, "overall": counts}


def _mentions(rng: random.Random, most: int) -> list[dict[str, Any]]:
    """Mentions of which none touches another."""
    starts = rng.sample(range(0, 100, 5), rng.randint(0, most))
    return [{"label": rng.choice(TYPES), "start": start, "end": start + rng.randint(1, 3)} for start in sorted(starts)]


def _is_apart(mention: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    return all(mention["start"] != other["start"] for other in others)


def dcurves() -> dict[str, Any]:
    """Net benefit of a model, of everybody and standardised, at thresholds that some scores equal."""
    dca, frames = import_module("dcurves").dca, import_module("pandas")
    rng, samples = random.Random(SEED + 6), []  # noqa: S311 - no secret
    thresholds = [step / 20 for step in range(1, 20)]
    for share in (0.15, 0.5):
        labels = [int(rng.random() < share) for _ in range(80)]
        scores = [round(min(max(rng.gauss(share + 0.2 * label, 0.2), 0.0), 1.0), 2) for label in labels]
        table = dca(
            data=frames.DataFrame({"score": scores, "label": labels}),
            outcome="label",
            modelnames=["score"],
            thresholds=thresholds,
        )
        columns = {name: table[table.model == name].net_benefit.tolist() for name in ("score", "all", "none")}
        samples.append({"scores": scores, "labels": labels, "thresholds": thresholds, "net_benefit": columns})
    return {"version": metadata.version("dcurves"), "samples": samples}


def trec_eval(*programs: str) -> dict[str, Any]:
    """What each version prints for rankings with ties, documents that nobody judged, and few relevant ones."""
    rng = random.Random(SEED + 4)  # noqa: S311 - no secret
    names = [f"d{number:02}" for number in range(DOCUMENTS)]
    runs, judgements = {}, {}
    for query in (f"q{number:02}" for number in range(QUERIES)):
        judged = rng.sample(names, rng.randint(6, 20))
        relevant = rng.sample(judged, rng.randint(1, len(judged)))
        judgements[query] = {name: int(name in relevant) for name in judged}
        runs[query] = {name: rng.randint(0, 12) for name in rng.sample(names, rng.randint(5, DEEPEST))}
    versions = dict(zip(programs[1::2], programs[::2], strict=True))
    printed = {version: _printed(program, runs, judgements) for version, program in versions.items()}
    return {"version": ", ".join(versions), "runs": runs, "judgements": judgements, "printed": printed}


def ir_measures() -> dict[str, Any]:
    """Values by query of its providers, for grades from 0 to 4, with ties and without; some queries have none above 0.

    Equal scores come by rising id in judged and msmarco, which are recorded with ties as `rising`, and in the order of
    the input in cwl_eval, which is recorded without ties alone.
    """
    evaluator = import_module("ir_measures")
    rng = random.Random(SEED + 5)  # noqa: S311 - no secret
    names = [f"d{number:02}" for number in range(DOCUMENTS)]
    runs: dict[str, dict[str, dict[str, float]]] = {"tied": {}, "untied": {}}
    judgements = {}
    for query in map(str, range(1, QUERIES + 1)):
        highest = rng.choice((0, 1, 2, 3, 4, 4, 4))
        judgements[query] = {name: rng.randint(0, highest) for name in rng.sample(names, rng.randint(4, 16))}
        retrieved = rng.sample(names, rng.randint(1, DEEPEST))
        runs["tied"][query] = {name: float(rng.randint(0, 6)) for name in retrieved}
        runs["untied"][query] = {name: float(place) for place, name in enumerate(retrieved)}
    values: dict[str, dict[str, dict[str, float]]] = {}
    for kind, run in runs.items():
        values[kind] = defaultdict(dict)
        for provider, texts in BY_PROVIDER.items():
            if kind == "tied" and provider in {"judged", "cwl_eval"}:
                continue
            measures = [evaluator.parse_measure(text) for text in texts]
            for metric in getattr(evaluator, provider).iter_calc(measures, judgements, run):
                text = texts[measures.index(metric.measure)]
                values[kind][metric.query_id][text] = float(metric.value)
    rising: dict[str, dict[str, float]] = defaultdict(dict)
    for provider, texts in BY_RISING_ID.items():
        measures = [evaluator.parse_measure(text) for text in texts]
        for metric in getattr(evaluator, provider).iter_calc(measures, judgements, runs["tied"]):
            rising[metric.query_id][texts[measures.index(metric.measure)]] = float(metric.value)
    values["rising"] = rising
    tools = ("ir-measures", "pytrec-eval-terrier", "cwl-eval")
    version = ", ".join(f"{tool} {metadata.version(tool)}" for tool in tools)
    return {"version": version, "runs": runs, "judgements": judgements, "values": values}


def _printed(program: str, runs: dict[str, Any], judgements: dict[str, Any]) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = Path(folder, "run"), Path(folder, "qrels")
        run.write_text(
            "".join(
                f"{query} Q0 {name} 0 {score} x\n" for query, scores in runs.items() for name, score in scores.items()
            )
        )
        qrels.write_text(
            "".join(
                f"{query} 0 {name} {label}\n" for query, labels in judgements.items() for name, label in labels.items()
            )
        )
        measures = [word for name in MEASURES for word in ("-m", name)]
        command = [program, "-q", *measures, str(qrels), str(run)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    printed: dict[str, dict[str, float]] = defaultdict(dict)
    for measure, query, value in (line.split() for line in output.splitlines()):
        if query != "all":
            printed[query][measure] = float(value)
    return printed


TOOLS = {each.__name__: each for each in (roerich, ruptures, nervaluate, tcpdbench, trec_eval, ir_measures, dcurves)}

if __name__ == "__main__":
    tool, *arguments = sys.argv[1:]
    text = json.dumps(TOOLS[tool](*arguments), separators=(",", ":")).replace('},{"', '},\n{"')
    Path(__file__).with_name(f"{tool}.json").write_text(text + "\n", encoding="utf-8")
