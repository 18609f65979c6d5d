"""Datasets of lineage events: the inputs and the result tables of a run, from its record and its files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tables.schemas import COUNT_TABLE
from .facets import facet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...storage.manifest import PublishedFile

Dataset = dict[str, Any]
_WILD = re.compile(r"[*?\[{]")
_REMOTE = re.compile(r"(?P<store>[a-z][a-z0-9+.-]*://[^/]+)/*(?P<key>.*)", re.IGNORECASE | re.DOTALL)


def input_datasets(run: Mapping[str, Any]) -> list[Dataset]:
    """Return what a run read, one dataset for each file, folder or start of a glob that its config names.

    Frames, and tables that other stages of the run made, are no datasets. A dataset that several stages read is listed
    once.

    Args:
        run: The record of the run.
    """
    datasets: dict[str, _Read] = {}
    for stage in run["configuration"]["stages"]:
        for name, files in _files_by_input(run, stage["name"]).items():
            roots = _roots(stage.get(name), Path(run["base"]))
            for file in files:
                root = max((root for root in roots if _lies_in(file["path"], root)), key=len, default=file["path"])
                datasets.setdefault(root, _Read(root)).add(run, stage["name"], name, file)
    return [datasets[root].dataset() for root in sorted(datasets)]


def _files_by_input(run: Mapping[str, Any], stage: str) -> dict[str, list[dict[str, Any]]]:
    """Return the files that a stage read from outside the run, by input."""
    files: dict[str, list[dict[str, Any]]] = {}
    for file in run["inputs"]:
        is_outside = Path(file["path"]).is_absolute() or _REMOTE.fullmatch(file["path"])
        if file["stage"] == stage and is_outside and not file.get("is_frame"):
            files.setdefault(file["input"], []).append(file)
    return files


def _roots(configured: object, base: Path) -> list[str]:
    """Return the paths of an input as they are configured, absolute, up to the first wild character."""
    texts = configured.get("path", []) if isinstance(configured, dict) else []
    return [_root(text, base) for text in texts if isinstance(text, str)]


def _root(text: str, base: Path) -> str:
    if (wild := _WILD.search(text)) is not None:
        text = text[: wild.start()].rpartition("/")[0] or ("/" if text.startswith("/") else ".")
    if _REMOTE.fullmatch(text):
        return text.rstrip("/")
    return os.path.abspath(base / Path(text.removeprefix("file://")).expanduser())  # noqa: PTH100 - links stay


def _lies_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


class _Read:
    """A dataset that a run read.

    Attributes:
        root: Its file, its folder, or the start of its glob.
        files: Its files by path.
        columns: What its columns are read as: column → fields.
        accounts: What became of the rows of the inputs that it is the whole of, by stage and input.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, dict[str, Any]] = {}
        self.columns: dict[str, list[str]] = {}
        self.scores: dict[str, dict[str, int]] = {}
        self.used = 0

    def add(self, run: Mapping[str, Any], stage: str, name: str, file: dict[str, Any]) -> None:
        """Add a file that an input of a stage reads."""
        self.files[file["path"]] = file
        account = run.get("accounting", {}).get(stage, {}).get(name, {})
        self.used = max(self.used, account.get("used", 0))
        for field, binding in run.get("bindings", {}).get(stage, {}).items():
            source, _, canonical = field.partition(".")
            column = binding.get("column")
            if source != name or column is None:
                continue
            if canonical not in self.columns.setdefault(column, []):
                self.columns[column].append(canonical)
            if canonical == "score" and account:
                self.scores[column] = {"nullCount": account.get("null_score", 0), "count": account.get("used", 0)}

    def dataset(self) -> Dataset:
        """Return the dataset of the event."""
        rows = sum(file["rows"] for file in self.files.values())
        size = sum(file.get("size", 0) for file in self.files.values())
        read = {"rowCount": rows, "size": size, "fileCount": len(self.files)}
        quality = {"rowCount": min(self.used, rows), "bytes": size, "fileCount": len(self.files)}
        fields = [
            {"name": column, "description": f"read as {', '.join(names)}"} for column, names in self.columns.items()
        ]
        return {
            **_name(self.root),
            "facets": {
                "dataSource": facet("1-0-1", "DatasourceDatasetFacet", name=self.root, uri=_uri(self.root)),
                "schema": facet("1-2-0", "SchemaDatasetFacet", fields=fields),
            },
            "inputFacets": {
                "inputStatistics": facet("1-0-0", "InputStatisticsInputDatasetFacet", **read),
                "dataQualityMetrics": facet(
                    "1-0-3", "DataQualityMetricsInputDatasetFacet", **quality, columnMetrics=self.scores
                ),
            },
        }


def output_datasets(
    run: Mapping[str, Any],
    files: Sequence[PublishedFile],
    output: str,
    descriptions: Mapping[str, Mapping[str, str]],
) -> list[Dataset]:
    """Return the tables of a run, each named by the stable path below `latest`, with the run as its version.

    Args:
        run: The record of the run.
        files: Its files.
        output: The place of the results, a folder or an address.
        descriptions: What columns mean: table → column → text.
    """
    tables: dict[str, list[PublishedFile]] = {}
    for file in files:
        folder, slash, _ = file.path.partition("/")
        if slash and folder != COUNT_TABLE:
            tables.setdefault(folder, []).append(file)
    edition = f"{run['generation']:08d}-{run['run_id']}"
    latest = f"{output}/latest/" if _REMOTE.fullmatch(output) else str(Path(output, "latest")) + os.sep
    return [_output(latest + name, tables[name], edition, descriptions.get(name, {})) for name in sorted(tables)]


def _output(path: str, files: Sequence[PublishedFile], edition: str, meanings: Mapping[str, str]) -> Dataset:
    columns = {name: kind for file in files for name, kind in file.schema.items()}
    written = {
        "rowCount": sum(file.rows for file in files),
        "size": sum(file.size for file in files),
        "fileCount": len(files),
    }
    return {
        **_name(path),
        "facets": {
            "schema": facet("1-2-0", "SchemaDatasetFacet", fields=[*_described(columns, meanings)]),
            "version": facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=edition),
        },
        "outputFacets": {"outputStatistics": facet("1-0-2", "OutputStatisticsOutputDatasetFacet", **written)},
    }


def _described(columns: Mapping[str, str], meanings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for name, kind in columns.items():
        meaning = {"description": meanings[name]} if name in meanings else {}
        yield {"name": name, "type": kind, **meaning}


def _name(path: str) -> dict[str, str]:
    """Return namespace and name of a dataset as the specification forms them for files and object stores."""
    remote = _REMOTE.fullmatch(path)
    return (
        {"namespace": "file", "name": path} if remote is None else {"namespace": remote["store"], "name": remote["key"]}
    )


def _uri(path: str) -> str:
    return path if _REMOTE.fullmatch(path) else Path(path).as_uri()
