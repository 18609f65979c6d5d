"""The pages say what is true: columns, queries, configs and links are checked against the code."""

from __future__ import annotations

import doctest
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import warnings
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.calls import call
from documenting import BLOCK, written
from filelock import FileLock
from storage.second_night import add_second_night

from pipeline import open_results
from pipeline.base import errors
from pipeline.base.schemas import LEADING
from pipeline.runs.config import load_config, parse_config
from pipeline.runs.stage_results import GATE_FAILED
from pipeline.stages import STAGES

if TYPE_CHECKING:
    import duckdb

    from pipeline.base.schemas import Column, Table

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "sql").glob("*.md")], key=lambda page: page.as_posix()
)
PAGE = ROOT / "docs" / "results.md"
SITE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))
DOCUMENTED: dict[str, tuple[Column, ...]] = SITE["documented"]()
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
COLUMN_ROW = re.compile(
    r"^\| `(?P<name>[^`]+)` \| (?P<type>BIGINT|DOUBLE|VARCHAR|BOOLEAN|DATE|TIMESTAMP|VARCHAR\[\]|KEY|POSITION) \| "
    r"[^|]+ \| ",
    re.MULTILINE,
)
UNUSED_SETTING = re.compile(r"^#(?P<key>[a-z_]+) = (?P<value>[^#\n]*[^#\s])")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [match["text"] for match in BLOCK.finditer(page.read_text("utf-8")) if match["language"] == language]


QUERIES = [
    pytest.param(text, id=f"{relative(page)}-{number}")
    for page in PAGES
    for number, text in enumerate(blocks(page, "sql"), start=1)
    if text.lstrip().startswith(("FROM", "SELECT"))
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, demo_as_made: Path) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "demo"
    with FileLock(demo_as_made.with_suffix(".lock")):
        shutil.copytree(demo_as_made, folder, symlinks=True)
    add_second_night(folder / "results", stage="threshold_sweep")  # for the queries about runs and attempts
    return folder


@pytest.mark.wide
def test_the_readme_shows_what_the_demo_prints(demo: Path) -> None:
    shown = next(text for text in blocks(ROOT / "README.md", "text") if text.startswith("before_after: estimated"))
    assert (demo / "printed.txt").read_text().startswith(shown)


@pytest.mark.wide
def test_the_first_lines_of_the_readme_print_what_they_show(
    demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo.parent)
    exec(compile(blocks(ROOT / "README.md", "python")[0], "README.md", "exec"), {})  # noqa: S102 - what people type
    assert capsys.readouterr().out == blocks(ROOT / "README.md", "text")[0]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


# Queries -------------------------------------------------------------------------------------------------------------


@pytest.mark.wide
@pytest.mark.parametrize("sql", QUERIES)
def test_every_query_of_the_pages_returns_rows(sql: str, demo: Path) -> None:
    with open_results(demo / "results") as connection:
        assert connection.execute(sql).fetchall()


EXAMPLES = [f"docs/{name}.md" for entry in STAGES for name in (entry.kind, f"methods/{entry.kind}")]
EXAMPLES += ["docs/explain.md", "docs/gates.md", "docs/plan.md", "docs/python.md", "docs/show.md"]
EXAMPLES += [relative(path) for path in sorted((ROOT / "docs").glob("from_*.md"))]


@pytest.mark.wide
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_of_a_page_print_what_it_shows(page: str, demo_as_made: Path, tmp_path: Path) -> None:
    """`python tests/documenting.py PAGE` writes what they print into the page."""
    (tmp_path / "demo").symlink_to(demo_as_made)
    text = (ROOT / page).read_text("utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as in a process of its own
        assert written(text, tmp_path) == text


def test_the_examples_of_the_pure_functions_hold() -> None:
    outcome = doctest.testfile(str(ROOT / "docs" / "pure_functions.md"), module_relative=False)
    assert outcome.attempted >= 15
    assert outcome.failed == 0


@pytest.mark.wide
def test_the_site_is_built_with_all_its_links(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), str(tmp_path / "site")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")} <= {
        path.name for path in (tmp_path / "site").iterdir()
    }


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_a_page_to_use_a_stage_is_short_and_begins_with_an_example(kind: str) -> None:
    text = (ROOT / "docs" / f"{kind}.md").read_text("utf-8")
    assert len(text.splitlines()) <= 250
    assert HEADING.findall(prose(text))[1] == "An example"


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 5
    assert len(blocks(ROOT / "docs" / "queries.md", "sql")) == 20


# Columns -------------------------------------------------------------------------------------------------------------


def prose(page: Path | str) -> str:
    """A page, or its text, without its blocks of code."""
    return BLOCK.sub("", page if isinstance(page, str) else page.read_text("utf-8"))


def sections(page: Path | str) -> dict[str, str]:
    """Text below each heading of a page, up to the next."""
    text = prose(page)
    headings = list(HEADING.finditer(text))
    ends = [match.start() for match in headings[1:]] + [len(text)]
    return {match["text"]: text[match.end() : end] for match, end in zip(headings, ends, strict=True)}


def written_columns(title: str) -> list[tuple[str, str]]:
    """Name and type of the columns in the table below a heading of docs/results.md."""
    return [(row["name"], row["type"]) for row in COLUMN_ROW.finditer(sections(PAGE)[title])]


def test_the_site_has_the_columns_of_every_table() -> None:
    """Names, types, null rules and meanings, from the contracts; the checkout has none of them."""
    text = PAGE.read_text("utf-8")
    built = sections(SITE["with_columns"](text))
    for heading, columns in DOCUMENTED.items():
        assert SITE["rows"](columns) in built[heading], heading
        assert SITE["HEAD"] not in sections(text)[heading], heading
    with pytest.raises(ValueError, match="no section before_after_lags"):
        SITE["with_columns"](text.replace("### before_after_lags", "### lags"))


def test_every_null_rule_is_told_and_every_link_is_one_of_the_page() -> None:
    """A rule in other words than `; NULL: …` would be lost, and a comment in a database has no links."""
    texts = [column for columns in DOCUMENTED.values() for column in columns]
    assert [column.name for column in texts if re.search(r"; NULL(?!: )", column.meaning)] == []
    assert [column.name for column in texts if "](" in column.comment or "](" in column.definition] == []
    assert [column.name for column in texts if "; NULL: " in column.meaning and not column.nullable] == []
    assert any("](" in column.meaning for column in texts)
    assert [column.name for column in texts if re.search(r"\blikewise\b", column.comment)] == []  # it stands alone


def test_every_documented_table_exists() -> None:
    tables = {table.name for entry in STAGES for table in entry.load().tables}
    kinds = tuple(entry.kind for entry in STAGES)
    titles = {title for title in sections(PAGE) if title.startswith(kinds)}
    assert titles == tables


@pytest.mark.wide
@pytest.mark.parametrize("table", SITE["RUN_TABLES"], ids=lambda table: table.name)
def test_the_catalog_has_the_tables_of_every_run_as_promised(table: Table, demo: Path) -> None:
    with open_results(demo / "results") as connection:
        assert columns_of(connection, table.name) == [(column.name, column.type) for column in table.columns]


def test_the_catalog_comments_as_the_page_does(demo: Path) -> None:
    query = "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal AND schema_name = 'main'"
    with open_results(demo / "results") as connection:
        comments = {(table, name): comment for table, name, comment in connection.execute(query).fetchall()}
    n_compared = 0
    for heading, columns in DOCUMENTED.items():
        for column in columns:
            comment = comments.get((heading, column.name))
            n_compared += comment is not None
            assert comment in {None, column.comment}, (heading, column.name)
    assert n_compared > 500


def test_the_columns_of_saved_counts_are_documented(demo: Path) -> None:
    with open_results(demo / "results") as connection:
        shown = columns_of(connection, "counts_before_after")
    leading = {column.name for column in LEADING} | {"source"}
    expected = [column for column in shown if column[0] not in leading]
    assert written_columns("counts_before_after") == expected


def columns_of(connection: duckdb.DuckDBPyConnection, view: str) -> list[tuple[str, str]]:
    rows = connection.execute(f'DESCRIBE "{view}"').fetchall()  # a name from this file
    return [(str(row[0]), str(row[1])) for row in rows]


# Configs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CONFIGS, ids=relative)
def test_every_config_is_accepted(path: Path) -> None:
    assert load_config(path).stages


def unused_settings(path: Path) -> list[tuple[str, str, str]]:
    """(table, key, value) of the settings that are commented out, with the table that they stand in."""
    settings, table = [], ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("["):
            table = line.split("#")[0].strip().strip("[]")
        elif match := UNUSED_SETTING.match(line):
            settings.append((table, match["key"], match["value"]))
    return settings


@pytest.mark.parametrize("path", CONFIGS, ids=relative)
def test_every_setting_that_is_commented_out_is_accepted(path: Path) -> None:
    text = path.read_text("utf-8")
    for table, key, value in unused_settings(path):
        document = tomllib.loads(text)
        settings = document["stages"][0] if table == "stages" else document.setdefault(table, {}) if table else document
        assert key not in settings, (table, key)
        settings[key] = tomllib.loads(f"value = {value}")["value"]
        if key == "cluster_order":
            settings.setdefault("cluster", "day")
        if key in {"checked", "sampling"}:
            settings.setdefault("labels", "sheet.csv")
        assert parse_config(document, base=path.parent).stages, (table, key)


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_the_starter_shows_every_key_of_its_stage(kind: str) -> None:
    path = ROOT / "configs" / f"{kind}.toml"
    entry = next(entry for entry in STAGES if entry.kind == kind)
    used = set(tomllib.loads(path.read_text("utf-8"))["stages"][0])
    shown = used | {key for table, key, _ in unused_settings(path) if table == "stages"}
    assert shown == set(entry.load().parameters.keys())


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_every_key_of_a_stage_is_on_its_page(kind: str) -> None:
    entry = next(entry for entry in STAGES if entry.kind == kind)
    rows = re.findall(
        r"^\| ((?:`[a-z_]+`(?:, )?)+) \| ", sections(ROOT / "docs" / f"{kind}.md")["Parameters"], re.MULTILINE
    )
    keys = [key for row in rows for key in re.findall(r"`([a-z_]+)`", row)]
    assert sorted(keys) == sorted(set(entry.load().parameters.keys()) - {"kind"})


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_every_column_of_an_input_is_on_its_page(kind: str) -> None:
    entry = next(entry for entry in STAGES if entry.kind == kind)
    named = set(re.findall(r"`([a-z_]+)`", sections(ROOT / "docs" / f"{kind}.md")["Inputs and columns"]))
    missing = {field.name for contract in entry.load().inputs for field in contract.fields} - named
    assert not missing


@pytest.mark.wide
@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_the_starter_runs_beside_the_demo(kind: str, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "configs" / f"{kind}.toml", demo.parent / "my.toml")
    monkeypatch.chdir(demo.parent)
    finished = call("run", "my.toml", "--quiet")
    assert finished.code == 0, finished.err
    assert json.loads((Path(finished.out.strip()) / "run.json").read_text("utf-8"))["status"] == "published"


# Links and wording ---------------------------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """The fragment that leads to a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    return {anchor(title) for title in sections(page)}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in {target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target}:
        path, _, fragment = target.partition("#")
        target_path = (page.parent / path).resolve() if path else page
        assert target_path.exists(), target
        assert target_path.is_relative_to(ROOT), target
        assert not fragment or fragment in anchors(target_path), target


def test_headings_of_a_page_do_not_repeat() -> None:
    for page in PAGES:
        titles = sorted(HEADING.findall(prose(page))) if page.name != "CHANGELOG.md" else []
        assert [title for title, same in groupby(titles) if len(list(same)) > 1] == [], page


def test_exit_codes_are_documented() -> None:
    section = sections(ROOT / "docs" / "operations.md")["Exit codes"]
    rows = re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
    codes = {int(code) for row in rows for code in row.split(",")}
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type))
    leaves = {kind.exit_code for kind in kinds if issubclass(kind, errors.ThresherError)}
    assert leaves | {0, GATE_FAILED, 130, 134, 137, 139, 143} == codes
