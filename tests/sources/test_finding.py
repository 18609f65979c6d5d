"""Which files an input has: none twice, none left out in silence, none of a table whose log would decide."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call
from running import before_after_config, read_table, run_before_after

import pipeline
from pipeline.base.errors import ConfigError, DataError, NoInputError, PermissionDenied, StorageError
from pipeline.base.paths import local_path
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


PAIRS = pl.DataFrame({"event_id": [1, 2], "score": [0.9, 0.2], "lag_hours": [1.0, -1.0]})


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        PAIRS.write_parquet(folder / name)


def find(folder: Path, path: Any) -> Listing:  # noqa: ANN401 - as in a config
    return Listing(Input.model_validate({"path": path}), folder, name="pairs").opened()


def names(folder: Path, path: Any) -> list[str]:  # noqa: ANN401 - as in a config
    return [Path(file.name).relative_to(folder).as_posix() for file in find(folder, path).files]


def test_the_ending_counts_in_upper_and_lower_case(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet", "in/b.PARQUET", "in/c.Parquet")
    assert names(tmp_path, "in") == ["in/a.parquet", "in/b.PARQUET", "in/c.Parquet"]
    assert find(tmp_path, "in").skipped == ()


@pytest.mark.wide
@pytest.mark.parametrize("name", ["part-00000", "a.parquet.snappy", "a.pq", "a.parquet_1"])
def test_parquet_of_another_ending_in_a_folder_is_warned_about(tmp_path: Path, name: str) -> None:
    write(tmp_path, "in/a.parquet", "in/b.parquet", f"in/{name}")
    run = pipeline.run(before_after_config(tmp_path, {}, pairs=str(tmp_path / "in"), thresholds=[0.5]))
    (warning,) = (text for text in run.warnings if "not read" in text)
    assert "input pairs: 1 file in its folders is not read, because its name does not end in .parquet: " in warning
    assert f"in/{name}; it holds Parquet. Rename them" in warning
    assert read_table(run, "inputs")["rows_in"].to_list() == [4]
    skipped = {"stage": "before_after", "input": "pairs", "path": str(tmp_path / "in" / name), "is_parquet": True}
    assert pl.read_json(run.path / "run.json")["skipped"].to_list() == [[skipped]]


def test_a_file_of_another_format_in_a_folder_is_named_and_no_more(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet")
    for name in ("README.txt", "notes.md", "zero", "x.csv"):
        (tmp_path / "in" / name).write_text("PAR1" if name == "notes.md" else "" if name == "zero" else "words")
    run = run_before_after(tmp_path, {}, pairs=str(tmp_path / "in"), thresholds=[0.5])
    (warning,) = (text for text in run.warnings if "not read" in text)
    assert "4 files in its folders are not read" in warning
    assert "README.txt" in warning
    assert warning.endswith("none holds Parquet")


def test_hidden_files_are_left_out_without_a_word(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet", "in/_temporary/b", "in/.c", "in/_d")
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / ".a.parquet.crc").write_bytes(b"crc")
    assert find(tmp_path, "in").skipped == ()


@pytest.mark.parametrize("others", [["part-0"], ["part-0", "part-1", "part-2"]])
def test_half_of_the_parquet_files_are_not_left_out(tmp_path: Path, others: list[str]) -> None:
    write(tmp_path, "in/a.parquet", *(f"in/{name}" for name in others))
    with pytest.raises(DataError, match=rf"part-0.*{len(others)} of {len(others) + 1} Parquet files") as raised:
        find(tmp_path, "in")
    assert "Rename them" in str(raised.value.remedy)
    assert names(tmp_path, "in/*") == ["in/a.parquet", *(f"in/{name}" for name in others)]
    assert names(tmp_path, ["in", "in/part-*"]) == ["in/a.parquet", *(f"in/{name}" for name in others)]


def test_most_of_the_bytes_are_not_left_out(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet", "in/b.parquet")
    pl.DataFrame({"x": range(100_000)}).write_parquet(tmp_path / "in" / "part-0")
    with pytest.raises(DataError, match="1 of 3 Parquet files"):
        find(tmp_path, "in")


@pytest.mark.parametrize("path", ["in", "i*", "in/**"])
def test_a_folder_with_nothing_but_other_endings_says_what_it_holds(tmp_path: Path, path: str) -> None:
    write(tmp_path, "in/part-0", "in/part-1")
    with pytest.raises(NoInputError, match=r"no file matches .*part-0, .*part-1; 2 of them hold Parquet"):
        find(tmp_path, path)


@pytest.mark.wide
def test_a_file_that_a_later_day_adds_under_another_ending_is_told(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet", "in/b.parquet")
    assert not any("not read" in text for text in run_pairs(tmp_path, "in").warnings)
    write(tmp_path, "in/part-2")
    assert any("part-2; it holds Parquet" in text for text in run_pairs(tmp_path, "in").warnings)


def run_pairs(folder: Path, path: str) -> Any:  # noqa: ANN401 - a run
    return run_before_after(folder, {}, pairs=str(folder / path), thresholds=[0.5])


def test_check_tells_what_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet", "in/b.parquet", "in/part-0")
    (tmp_path / "c.toml").write_text('[[stages]]\nkind = "before_after"\npairs = "in"\nthresholds = [0.5]\n')
    called = call("check", tmp_path / "c.toml")
    assert called.code == 0
    assert "part-0; it holds Parquet" in called.out


def delta(table: Path) -> None:
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / "00000000000000000000.json").write_text("{}")


def iceberg(table: Path) -> None:
    (table / "metadata").mkdir(parents=True)
    (table / "metadata" / "v1.metadata.json").write_text("{}")


def hinted(table: Path) -> None:
    (table / "metadata").mkdir(parents=True)
    (table / "metadata" / "version-hint.text").write_text("1")


def hudi(table: Path) -> None:
    (table / ".hoodie").mkdir(parents=True)


@pytest.mark.parametrize(
    ("make", "kind", "path"),
    [
        *((delta, "Delta Lake", path) for path in ("t", "t/*.parquet", "t/a.parquet", "t/data", "t/data/day=1", ".")),
        *((iceberg, "Apache Iceberg", path) for path in ("t/**/*.parquet", "*", "link.parquet", "lake/t", "t")),
        *((hinted, "Apache Iceberg", path) for path in ("t/data", ".")),
        *((hudi, "Apache Hudi", path) for path in ("t", "t/a.parquet", "t/data/day=1", "link.parquet")),
    ],
)
def test_a_table_whose_log_decides_is_no_plain_parquet(
    tmp_path: Path, make: Callable[[Path], None], kind: str, path: str
) -> None:
    write(tmp_path, "t/a.parquet", "t/data/day=1/b.parquet")
    make(tmp_path / "t")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "t" / "a.parquet")
    (tmp_path / "lake").symlink_to(tmp_path, target_is_directory=True) if path == "lake/t" else None
    words = f"cannot be read as .*table.*|is a table of {kind}"  # of the folder itself, whose log here is none
    with pytest.raises(DataError, match=rf"input pairs: \S*/t\S* ({words})"):
        find(tmp_path, path)


def test_a_folder_called_metadata_is_no_table(tmp_path: Path) -> None:
    write(tmp_path, "t/a.parquet")
    (tmp_path / "t" / "metadata").mkdir()
    (tmp_path / "t" / "metadata" / "columns.json").write_text("{}")
    (tmp_path / "t" / "README_delta_log").write_text("words")
    assert names(tmp_path, "t") == ["t/a.parquet"]


@pytest.mark.parametrize(
    "path",
    ["s3://b/x", "gs://b/x", "az://b/x", "abfss://c@a.dfs/x", "hdfs://n/x", "dbfs:/x", "https://h/x", "file://h/x"],
)
def test_a_remote_place_is_refused(tmp_path: Path, path: str) -> None:
    for what in ("output", "input pairs"):
        with pytest.raises(
            ConfigError, match=rf"^{what}: {path} is on a remote store \({path.split(':', maxsplit=1)[0]}\)"
        ):
            local_path(path, tmp_path, what=what)


@pytest.mark.parametrize("key", ["output", "scratch", "pairs", "--output"])
def test_a_remote_place_makes_no_folder(tmp_path: Path, key: str) -> None:
    write(tmp_path, "p.parquet")
    path = "hdfs://bucket/x"
    top = f'output = "{path}"' if key == "output" else f'[resources]\nscratch = "{path}"' if key == "scratch" else ""
    pairs = path if key == "pairs" else "p.parquet"
    (tmp_path / "c.toml").write_text(
        f'{top}\n[[stages]]\nkind = "before_after"\npairs = "{pairs}"\nthresholds = [0.5]\n'
    )
    before = sorted(tmp_path.iterdir())
    called = call("run", tmp_path / "c.toml", *(["--output", path] if key == "--output" else []))
    assert called.code == 78
    assert "is on a remote store (hdfs), which is not supported yet" in called.err
    assert [item for item in sorted(tmp_path.iterdir()) if item not in before and item.name != "results"] == []


@pytest.mark.parametrize("path", ["C:/x", "C:\\x", "a:b", "./s3:/x", "x s3://y"])
def test_a_colon_makes_no_scheme_by_itself(tmp_path: Path, path: str) -> None:
    assert local_path(path, tmp_path, what="output").is_relative_to(tmp_path)


def test_a_file_url_is_the_path_behind_it(tmp_path: Path) -> None:
    write(tmp_path, "a b/p.parquet")
    url = (tmp_path / "a b").as_uri()
    assert names(tmp_path, f"{url}/*.parquet") == ["a b/p.parquet"]
    assert names(tmp_path, url) == ["a b/p.parquet"]
    config = before_after_config(tmp_path, {}, pairs=f"{url}/p.parquet", thresholds=[0.5])
    run = pipeline.run(config | {"output": f"{url}/out"})
    assert run.path.parents[1] == tmp_path / "a b" / "out"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"output": "${OUT}/x"}, r"output: unknown variable \$\{OUT\}"),
        ({"output": "$OUT_DIR/x"}, r"has a variable, \$OUT_DIR, .*\n.*write \$\{env.OUT_DIR\}"),
        ({"output": "$${OUT}/x"}, r"has a variable, \$\{OUT\}, .*\n.*write \$\{env.OUT\}"),
        ({"resources": {"scratch": "$TMPX/x"}}, r"resources.scratch: .*has a variable, \$TMPX, "),
        ({"pairs": "${env.DATUM}/p.parquet"}, "pairs: the environment variable DATUM is not set"),
        ({"pairs": "$DATA/p.parquet"}, r"has a variable, \$DATA, "),
        ({"pairs": ["x/$DATA/*.parquet", "p.parquet"]}, r"has a variable, \$DATA, "),
        ({"pairs": {"path": "p.parquet", "where": "day = '${ds}'"}}, r"pairs.where: \$\{ds\} is not set"),
        ({"name": "n_${ds}"}, r"name: \$\{ds\} is not set"),
    ],
)
def test_a_variable_that_stands_for_nothing_is_refused(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    write(tmp_path, "p.parquet")
    top = {key: keys[key] for key in keys if key in {"output", "resources"}}
    stage = {"kind": "before_after", "pairs": str(tmp_path / "p.parquet"), "thresholds": [0.5]}
    stage |= {key: keys[key] for key in keys if key not in top}
    with pytest.raises(ConfigError, match=words):
        pipeline.run({"output": str(tmp_path / "r"), "stages": [stage], **top})
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "r") == ["p.parquet"]


def test_a_dollar_in_the_name_of_something_that_exists_is_itself(tmp_path: Path) -> None:
    write(tmp_path, "$DATA/$p.parquet", "cost$.parquet")
    assert names(tmp_path, "$DATA/$p.parquet") == ["$DATA/$p.parquet"]
    assert names(tmp_path, "$DATA/*.parquet") == ["$DATA/$p.parquet"]
    assert names(tmp_path, "cost$.parquet") == ["cost$.parquet"]


@pytest.mark.wide
def test_the_home_folder_is_meant_by_a_tilde_wherever_a_path_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "p.parquet", "q.parquet")
    top = 'output = "~/out"\n[resources]\nscratch = "~/scratch"\n'
    (tmp_path / "c.toml").write_text(
        f'{top}[[stages]]\nkind = "before_after"\npairs = "~/p.parquet"\nthresholds = [0.5]\n'
    )
    for words in (["run", "~/c.toml"], ["check", "~/c.toml"], ["run", "~/c.toml", "--output", "~/other"]):
        called = call(*words)
        assert called.code == 0, called.err
    assert (tmp_path / "scratch").is_dir()
    flags = ["before-after", "--pairs", "~/p.parquet", "--set", "thresholds=[0.5]", "--output", "~/flags"]
    assert call(*flags).code == 0
    for folder in ("out", "other", "flags"):
        assert (tmp_path / folder / "CURRENT").is_file()
        assert call("verify", f"~/{folder}").code == 0
        assert call("query", f"~/{folder}", "FROM before_after_estimates").code == 0
    pipeline.open_results("~/out").close()
    assert names(tmp_path, ["~/q.parquet", "~/p*.parquet"]) == ["q.parquet", "p.parquet"]
    assert not (tmp_path / "~").exists()


def test_a_home_folder_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="starts with the home folder of a user who is not known here"):
        find(tmp_path, "~no-such-user/p.parquet")
    write(tmp_path, "~p.parquet")
    assert names(tmp_path, "~p.parquet") == ["~p.parquet"]


def test_a_config_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    write(tmp_path, "p.parquet")
    text = '[[stages]]\nkind = "before_after"\npairs = "p.parquet"\nthresholds = [0.5]\n'
    (tmp_path / "c.toml").write_text(text, encoding="utf-8-sig")
    assert call("check", tmp_path / "c.toml").code == 0


def hard(link: Path, target: Path) -> None:
    link.hardlink_to(target)


def soft(link: Path, target: Path) -> None:
    link.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "path"),
    [(hard, "in"), (soft, "in/*.parquet"), (soft, "in/**/*.parquet"), (hard, ["in/a.parquet", "in/sub"]), (soft, "in")],
)
def test_a_file_that_is_reached_twice_is_an_error_that_names_both(
    tmp_path: Path, make: Callable[[Path, Path], None], path: str | list[str]
) -> None:
    write(tmp_path, "in/a.parquet", "in/sub/c.parquet")
    make(tmp_path / "in" / ("sub/b.parquet" if path != "in/*.parquet" else "b.parquet"), tmp_path / "in" / "a.parquet")
    with pytest.raises(DataError, match=r"in/a\.parquet and \S*b\.parquet are one and the same file"):
        find(tmp_path, path)


@pytest.mark.parametrize(
    "paths",
    [["a.parquet", "a.parquet"], ["a.parquet", "./a.parquet"], ["*.parquet", "a*"], [".", "x/../a.parquet"]],
)
def test_a_path_that_is_named_twice_is_an_error_that_names_both(tmp_path: Path, paths: Sequence[str]) -> None:
    write(tmp_path, "a.parquet")
    with pytest.raises(DataError) as raised:
        find(tmp_path, paths)
    assert f"a.parquet is named twice, by {paths[0]!r} and by {paths[1]!r}" in raised.value.message


def test_two_inputs_may_have_one_file(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet")
    assert names(tmp_path, "a.parquet") == names(tmp_path, "*.parquet")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        *zip(("in", "in/**/*.parquet", "**", "in/x/**", "*/x"), ("..", "../..", ".", "..", "."), strict=True),
        ("in", "."),
    ],
)
def test_a_link_that_leads_back_is_an_error_that_names_both(tmp_path: Path, path: str, target: str) -> None:
    write(tmp_path, "in/x/a.parquet")
    (tmp_path / "in" / "x" / "up").symlink_to(target, target_is_directory=True)
    (tmp_path / "in" / "x" / "up2").symlink_to(target, target_is_directory=True)
    with pytest.raises(DataError, match=r"the link \S*/in/x/up2? leads back to \S*"):
        find(tmp_path, path)


@pytest.mark.parametrize("path", ["in", "in/*", "in/**/*.parquet", "in/b.parquet", "in/b.parquet/*"])
@pytest.mark.parametrize("target", ["gone.parquet", "b.parquet"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, path: str, target: str) -> None:
    write(tmp_path, "in/a.parquet")
    (tmp_path / "in" / "b.parquet").symlink_to(target)
    with pytest.raises(NoInputError, match=r"in/b\.parquet"):
        find(tmp_path, path)


@pytest.mark.parametrize("path", ["in", "in/*/*.parquet", "in/**/*.parquet", "in/**", "in/l*"])
def test_folders_and_globs_follow_links_alike(tmp_path: Path, path: str) -> None:
    write(tmp_path, "far/a.parquet")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "far", target_is_directory=True)
    assert names(tmp_path, path) == ["in/link/a.parquet"]


def test_patterns_match_as_those_of_a_shell(tmp_path: Path) -> None:
    write(tmp_path, "a/1/x.parquet", "a/2/y.parquet", "a/2/deep/x.parquet", "a/.h/x.parquet", "b/[1]/x.parquet")
    assert names(tmp_path, "a/*/x.parquet") == ["a/1/x.parquet"]
    assert names(tmp_path, "a/**/x.parquet") == ["a/1/x.parquet", "a/2/deep/x.parquet"]
    assert names(tmp_path, "a/**/**/deep/*") == ["a/2/deep/x.parquet"]
    assert names(tmp_path, "a/[12]/?.parquet") == ["a/1/x.parquet", "a/2/y.parquet"]
    assert names(tmp_path, "a/.*/x.parquet") == ["a/.h/x.parquet"]
    assert names(tmp_path, "a/2/**") == ["a/2/deep/x.parquet", "a/2/y.parquet"]
    assert names(tmp_path, "b/[1]/x.parquet") == ["b/[1]/x.parquet"]
    assert names(tmp_path, "a/*/../1/x.parquet") == ["a/1/x.parquet"]


@pytest.mark.parametrize(
    "path", ["x" * 300, "x" * 5000, "*/" + "x" * 300, "/" + "y/" * 3000, "**/" * 500 + "x.parquet"]
)
def test_a_path_that_is_too_long_matches_nothing(tmp_path: Path, path: str) -> None:
    write(tmp_path, "in/a.parquet")
    with pytest.raises(NoInputError, match="no file matches") as raised:
        find(tmp_path, path)
    assert len(raised.value.message) < 1000


@pytest.mark.parametrize(("number", "kind"), [(errno.EACCES, PermissionDenied), (errno.EMFILE, StorageError)])
@pytest.mark.parametrize("path", ["in", "in/*.parquet", "in/**/*.parquet"])
def test_a_folder_that_cannot_be_listed_stops_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], path: str
) -> None:
    write(tmp_path, "in/a.parquet")

    def refuse(folder: Path) -> None:
        raise OSError(number, os.strerror(number), str(folder))

    monkeypatch.setattr("pipeline.sources.finding.os.scandir", refuse)
    with pytest.raises(kind, match="input pairs: listing"):
        find(tmp_path, path)


def test_a_file_whose_name_is_not_unicode_is_told(tmp_path: Path) -> None:
    write(tmp_path, "in/a.parquet")
    try:
        shutil.copy(tmp_path / "in" / "a.parquet", os.fsdecode(os.fsencode(tmp_path / "in") + b"/\xff.parquet"))
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(DataError, match=r"\\udcff\.parquet' is not Unicode"):
        find(tmp_path, "in")
