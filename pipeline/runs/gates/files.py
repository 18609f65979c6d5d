"""Gates as files for CI systems: JSON, and JUnit's XML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree as ET

from ...errors import BusyError, ThresherError
from ...safe_files import read_file, remove_own
from ...storage.layout import json_bytes, storage_errors
from ...tables.groupings import TOTAL
from ...visible_text import cleaned
from ..config import Config
from ..stage_results import is_failure
from ..variables import substituted
from ..written import gate_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..written import OwnFile


# What gates found as files for CI systems: JSON, and JUnit's XML.
#
# The XML has what the schemas of Apache Ant and of Jenkins ask for: one suite for each stage and one case for each row
# of the table `gates`. A row that makes the run exit with 3 is a failure; one that is undecided, or only warns, is
# skipped.


Row: TypeAlias = Mapping[str, Any]


def remove(files: Iterable[OwnFile]) -> None:
    """Remove the files of an earlier run, so that a run that fails leaves none that says otherwise.

    What a run did not write stays, and what cannot be removed: the run says so when it cannot write the file.
    """
    for file in files:
        if not file.fault:
            remove_own(file.path, file.path.parent, as_far_as_possible=True)


@contextmanager
def kept_by_success(files: Sequence[OwnFile]) -> Iterator[None]:
    """Remove the files if what is done inside fails, unless another run is at work, whose files they are."""
    try:
        yield
    except BusyError:
        raise
    except BaseException:
        remove(files)
        raise


def write(files: Iterable[OwnFile], record: Row, status: str, code: int) -> tuple[str, ...]:
    """Write the files of a finished run, and return a warning for each that cannot be written.

    Args:
        files: The files.
        record: The content of `run.json`.
        status: `published` or `unchanged`.
        code: Exit code of the run.
    """
    warnings = []
    contents: dict[str, Callable[[], bytes]] = {
        "gates_json": lambda: json_bytes(gates_as_json(record, status, code)),
        "gates_junit": lambda: gates_as_junit(record),
    }
    for file in files:
        try:
            with storage_errors(f"writing {file.path}"):
                file.path.parent.mkdir(parents=True, exist_ok=True)
                file.replace(contents[file.key]())
        except ThresherError as error:
            warnings.append(f"the results of the gates could not be written: {error.message}")
    return tuple(warnings)


def gates_as_json(record: Row, status: str, code: int) -> dict[str, Any]:
    """Return what the JSON file holds.

    Args:
        record: The content of `run.json`.
        status: `published` or `unchanged`.
        code: Exit code of the run.

    Returns:
        Run, status, exit code, the number of rows by outcome, and the rows of the table `gates`.
    """
    rows = record.get("gates", [])
    outcomes = [row["outcome"] for row in rows]
    return {
        "run_id": record["run_id"],
        "generation": record["generation"],
        "status": status,
        "config": record.get("config"),
        "judged_at": record.get("ended_at"),
        "exit": code,
        **{outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "undecided")},
        "gates": rows,
    }


def gates_as_junit(record: Row) -> bytes:
    """Return the XML file."""
    rows: list[Row] = record.get("gates", [])
    by_stage: dict[str, list[Row]] = {}
    for row in rows:
        by_stage.setdefault(row["stage"], []).append(row)
    totals = {name: number for name, number in _counts(rows).items() if name != "skipped"}  # not in every schema
    root = ET.Element("testsuites", {"name": "thresher gates", "time": "0", **totals})
    for number, (stage, of_stage) in enumerate(by_stage.items()):
        root.append(_suite(number, stage, of_stage, record))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _suite(number: int, stage: str, rows: Sequence[Row], record: Row) -> ET.Element:
    moment = str(record.get("ended_at") or "1970-01-01T00:00:00")[:19]
    host = str(record.get("host") or "localhost")
    suite = ET.Element("testsuite", name=stage, package="thresher", id=str(number), timestamp=moment)
    suite.attrib.update({"hostname": _plain(host), "time": "0", **_counts(rows)})
    properties = ET.SubElement(suite, "properties")
    for name in ("run_id", "generation"):
        ET.SubElement(properties, "property", name=name, value=str(record[name]))
    for row in rows:
        suite.append(_case(row))
    ET.SubElement(suite, "system-out").text = "\n".join(_plain(row["sentence"]) for row in rows)
    ET.SubElement(suite, "system-err")
    return suite


def _case(row: Row) -> ET.Element:
    group = "" if row["grouping"] == TOTAL else f" {row['group']}"
    name = _plain(f"{row['gate']} {row['condition']}{group}")
    case = ET.Element("testcase", classname=f"thresher.{row['stage']}", name=name, time="0")
    text = _plain(row["sentence"])
    if is_failure(row):
        ET.SubElement(case, "failure", message=text, type=row["condition"]).text = "\n".join(_numbers(row))
    elif row["outcome"] != "passed":
        word = "undecided" if row["outcome"] == "undecided" else "warning"
        ET.SubElement(case, "skipped", message=f"{word}: {text}")
    return case


def _numbers(row: Row) -> Iterator[str]:
    names = ("value", "lower", "upper", "baseline_run", "baseline_value", "limit", "p_value", "p_adjusted")
    return (f"{name}: {row[name]}" for name in names if row[name] is not None)


def _counts(rows: Sequence[Row]) -> dict[str, str]:
    n_failures = sum(map(is_failure, rows))
    n_skipped = sum(row["outcome"] != "passed" for row in rows) - n_failures
    return {"tests": str(len(rows)), "failures": str(n_failures), "errors": "0", "skipped": str(n_skipped)}


def _plain(text: str) -> str:
    """Return a text that XML can hold."""
    return cleaned(text, layout="").replace("\ufffe", "").replace("\uffff", "")


# The files that a run before has left, where the config of this one turns out to be wrong.


def remove_of_faulty(config: object, overrides: Mapping[str, Any] | None, values: Mapping[str, Any] | None) -> None:
    """Remove the files of the gates that a config names which cannot be used, as far as their place can be told.

    Args:
        config: Path of a TOML file, a dictionary with the same content, or a checked config.
        overrides: Values by dotted key; they replace those of the config.
        values: Values of variables by name.
    """
    if isinstance(config, Config):
        remove(config.gate_files)
        return
    document, base = _document_and_base(config)
    for key in ("gates_json", "gates_junit"):
        written = (overrides or {}).get(key, document.get(key))
        if isinstance(written, str | os.PathLike):
            remove(_files({key: os.fsdecode(written)}, document, base, values or {}))


def _document_and_base(config: object) -> tuple[Mapping[str, Any], Path]:
    """Return what can be read of a config, and the folder that its relative paths start from."""
    if isinstance(config, Mapping):
        return config, Path.cwd()
    if not isinstance(config, str | os.PathLike):
        return {}, Path.cwd()
    path = Path(os.fsdecode(config))
    try:
        return tomllib.loads(read_file(path).decode("utf-8-sig")), path.resolve().parent
    except (OSError, ValueError, RecursionError):
        return {}, path.absolute().parent


def _files(
    written: dict[str, str], document: Mapping[str, Any], base: Path, values: Mapping[str, Any]
) -> tuple[OwnFile, ...]:
    """Return the files at a place; none if a reference in it has no value, or the text names no place here."""
    declared = {"vars": document["vars"]} if "vars" in document else {}
    try:
        texts, _ = substituted({**declared, **written}, values if declared else {}, origin="<config>")
        return gate_files(texts, base, "<config>")
    except ThresherError:
        return ()
