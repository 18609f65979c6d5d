"""Commands that run: of one stage, made from its parameter class; of a range of days, one after another; and a demo."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ..base.errors import ThresherError, UsageError
from ..base.paths import local_path, read_file, shortened
from ..stages import STAGES
from .session import execute, parse_setting, reporting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..stages import StageEntry
    from ..stages.stage import Stage
    from .session import Console


def placeholder(entry: StageEntry) -> Any:  # noqa: ANN401 - typer's own command
    """Return a command with name and summary alone, for the list of commands."""
    return _command(entry, lambda: None, entry.summary, {})


def stage_command(entry: StageEntry) -> Any:  # noqa: ANN401 - typer's own command
    """Return the command of a stage: its inputs are options, every other key is set by --set."""
    stage = entry.load()
    first = stage.inputs[0].name
    options: dict[str, Any] = {"ctx": typer.Context}
    for contract in stage.inputs:
        text = f"{contract.meaning[0].upper()}{contract.meaning[1:]}; may be given several times."
        option = typer.Option(f"--{contract.name.replace('_', '-')}", metavar="PATH", help=text, show_default=False)
        options[contract.name] = Annotated[list[str] if contract.required else list[str] | None, option]
    keys = f"Set any other key: {', '.join(_keys(stage))}; or one of an input, for example '{first}.format=\"csv\"'."
    options |= {
        "mapping": _many(
            "--map",
            f"{first}.score=NAME",
            f"Canonical name = column of the files, for example {first}.{stage.inputs[0].fields[0].name}=my_column; "
            'false for none, or { sql = "…" }.',
        ),
        "where": _many("--where", f"{first}=SQL", "Use only the rows of an input that satisfy a predicate."),
        "settings": _many("--set", "KEY=TOML", keys),
        "output": Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Results folder.")],
        "engine": Annotated[str, typer.Option("--engine", help="duckdb or spark.")],
        "log_format": Annotated[
            str | None, typer.Option("--log-format", help="text, or json for one object per line.")
        ],
        "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")],
    }
    required = [contract.name for contract in stage.inputs if contract.required] or [first]
    flags = " ".join([*(f"--{name} {name}.parquet" for name in required), f"--set '{stage.parameters.example}'"])
    help_text = f"{entry.summary}\n\nExample:  thresher {entry.kind.replace('_', '-')} {flags}"
    return _command(entry, _callback(entry.kind, stage), help_text, options)


_DEFAULTS = {"output": "results", "engine": "duckdb", "quiet": False}


def _many(flag: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - an annotation
    return Annotated[list[str] | None, typer.Option(flag, metavar=metavar, help=text, show_default=False)]


def _command(entry: StageEntry, callback: Callable[..., None], help_text: str, options: dict[str, Any]) -> Any:  # noqa: ANN401
    """Make a typer command for a function whose signature is made here."""
    empty = inspect.Parameter.empty
    required = {"ctx", *(name for name, kind in options.items() if get_args(kind)[:1] == (list[str],))}
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=empty if name in required else _DEFAULTS.get(name),
            annotation=kind,
        )
        for name, kind in options.items()
    ]
    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__annotations__ = dict(options)
    maker = typer.Typer(add_completion=False, rich_markup_mode=None)
    maker.command(entry.kind.replace("_", "-"), help=help_text)(callback)
    return typer.main.get_command(maker)


def _keys(stage: Stage) -> list[str]:
    options = {"kind", *(contract.name for contract in stage.inputs)}
    return [name for name in stage.parameters.keys() if name not in options]  # noqa: SIM118 - a method of its own


def _callback(kind: str, stage: Stage) -> Callable[..., None]:
    def call(*, ctx: typer.Context, **values: Any) -> None:  # noqa: ANN401 - what the options parsed
        from ..runs.config import parse_config  # noqa: PLC0415

        with reporting(ctx, quiet=values["quiet"], log_format=values["log_format"]) as console:
            document = _document(kind, stage, values)
            execute(parse_config(document, base=Path.cwd(), origin=f"thresher {kind.replace('_', '-')}"), console)

    return call


def _document(kind: str, stage: Stage, values: dict[str, Any]) -> dict[str, Any]:
    """The config that the flags stand for."""
    table: dict[str, Any] = {"kind": kind}
    for contract in stage.inputs:
        if values[contract.name]:
            table[contract.name] = {"path": list(values[contract.name])}
    for text in values["mapping"] or ():
        column, _, file_column = text.partition("=")
        name, _, canonical = column.partition(".")
        if not canonical or not file_column:
            message = f"--map {text}: write INPUT.NAME=COLUMN"
            raise UsageError(message, remedy="For example --map pairs.score=weight.")
        # to the name of a column, `false`, or an expression `{ sql = "…" }`
        is_toml = file_column == "false" or file_column.startswith("{")
        mapped = parse_setting(f"columns={file_column}")[1] if is_toml else file_column
        _input(table, name, f"--map {text}").setdefault("columns", {})[canonical] = mapped
    for text in values["where"] or ():
        name, equals, predicate = text.partition("=")
        if not equals:
            message = f"--where {text}: write INPUT=SQL"
            raise UsageError(message, remedy="For example --where \"pairs=language = 'nl'\".")
        _input(table, name, f"--where {text}")["where"] = predicate
    for text in values["settings"] or ():
        _set(table, *parse_setting(text))
    return {"output": values["output"], "engine": values["engine"], "stages": [table]}


def _set(table: dict[str, Any], key: str, value: Any) -> None:  # noqa: ANN401 - any TOML value
    *path, last = key.split(".")
    for name in path:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            message = f"--set {key}: {name} is not a table"
            raise UsageError(message)
    table[last] = value


def _input(table: dict[str, Any], name: str, flag: str) -> dict[str, Any]:
    if not isinstance(table.get(name), dict):
        message = f"{flag}: no input {name!r} is given"
        raise UsageError(message, remedy=f"Give it with --{name} PATH.")
    settings: dict[str, Any] = table[name]
    return settings


MOST_DAYS = 3660
_RANGE = ".."
_EXAMPLE = "For example --var ds=2026-11-01..2026-11-20."


def run_days(values: Mapping[str, str], run_once: Callable[[Mapping[str, str]], Path], console: Console) -> None:
    """Run a config once, or once for each day of a range, in order; the first failure ends it, but not a gate's.

    `run_once` runs it with values of variables by name, and returns the results folder.

    Raises:
        UsageError: the range has no day, or too many.
        ThresherError: that of the run that failed; of a range it says which day that is, and which are done.
        typer.Exit: that of a run that is published, and yet not a success; which day that is has been logged. Days
            after one of which a gate failed are run all the same.
    """
    from ..runs.stage_results import GATE_FAILED  # noqa: PLC0415 - help needs none of it

    days = _days(values["ds"]) if _RANGE in values.get("ds", "") else ()
    results, days_with_failed_gates = None, list[str]()
    try:
        for number, day in enumerate(days, start=1):
            console.between_runs()
            console.log("info", f"ds {day}: day {number} of {len(days)}", event="day", ds=day)
            try:
                results = run_once({**values, "ds": day})
            except ThresherError as error:
                raise _stopped(error, days, number) from error.__cause__
            except typer.Exit as stop:  # published, and yet not a success
                if stop.exit_code != GATE_FAILED:
                    console.log("error", f"ds {day}: {_done(days, number)}", event="day", ds=day)
                    raise
                days_with_failed_gates.append(day)
        if not days:
            results = run_once(values)
        if days_with_failed_gates:
            failed = ", ".join(days_with_failed_gates)
            console.log("error", f"a gate failed on {failed}", event="day")
            raise typer.Exit(GATE_FAILED)
    finally:
        if results is not None and "ds" in values:
            from ..storage.catalog import shown_and_last_day  # noqa: PLC0415 - help needs none of it
            from ..storage.layout import Layout  # noqa: PLC0415 - likewise

            shown, last = shown_and_last_day(Layout(results))
            if shown and shown < last:
                words = f"the tables of the catalog, and latest, show {shown}, the run that was published last; "
                words += f"history goes up to {last}: to show that day, run it again"
                console.log("warning", words, event="warning")


def _days(text: str) -> Sequence[str]:
    try:
        first, last = (dt.date.fromisoformat(end) for end in text.split(_RANGE))
    except ValueError as error:
        message = f"--var ds={shortened(text)}: this is no range of days"
        raise UsageError(message, remedy=f"Write FIRST..LAST. {_EXAMPLE}") from error
    n_days = (last - first).days + 1
    if n_days < 1:
        message = f"--var ds={text}: the first day is after the last"
        raise UsageError(message, remedy=f"Days run from the earlier to the later one. {_EXAMPLE}")
    if n_days > MOST_DAYS:
        message = f"--var ds={text}: these are {n_days:,} days, more than {MOST_DAYS:,}"
        raise UsageError(message, remedy="Run them in several ranges.")
    return [(first + dt.timedelta(days=step)).isoformat() for step in range(n_days)]


def _stopped(error: ThresherError, days: Sequence[str], number: int) -> ThresherError:
    """Add to an error which day failed and which days are done."""
    error.message = f"ds {days[number - 1]}: {error.message}"
    error.remedy = "\n".join([*([error.remedy] if error.remedy else []), _done(days, number - 1)])
    error.args = (error.message,)
    return error


def _done(days: Sequence[str], n_done: int) -> str:
    """Say which days are done, and how to go on with the others."""
    several = f"Done are {days[0]} to {days[n_done - 1]}"
    done = "None is done" if not n_done else f"Done is {days[0]}" if n_done == 1 else several
    if n_done == len(days):
        return f"{done}, all {n_done:,} days."
    missing = days[n_done] if n_done == len(days) - 1 else f"{days[n_done]}{_RANGE}{days[-1]}"
    return f"{done}, of {len(days):,} days; --var ds={missing} goes on from here."


_DEMO = "demo.toml"
_TITLE = "# What `thresher demo` ran, on the data beside it:  thresher run demo.toml"


def run_demo(output: Path, console: Console) -> None:
    """Write data and a config, publish a run of it under `<output>/results`, write its report, and print the results.

    Raises:
        CannotCreateError: the folder cannot be written.
        UsageError: something in it would be replaced that is not of a demo.
    """
    import polars as pl  # noqa: PLC0415 - the list of commands needs none of it

    from ..report.page import write_report  # noqa: PLC0415 - likewise
    from ..report.published import latest_run  # noqa: PLC0415 - likewise
    from ..runs import runner  # noqa: PLC0415 - likewise
    from ..runs.config import load_config  # noqa: PLC0415 - likewise
    from ..storage.layout import make_folder, write_whole  # noqa: PLC0415 - likewise

    root = local_path(output, Path.cwd(), what="--output")
    _refuse_others(root, output)
    make_folder(root, "--output")
    write_whole(root / _DEMO, _TITLE.encode())  # what follows is a demo's, even if this one is killed
    package = __package__.rpartition(".")[0]  # its name may differ from `pipeline`
    simulations = {entry.kind: import_module(f"{package}.stages.simulations.{entry.kind}") for entry in STAGES}
    stages = [simulation.write_demo(root / "data" / kind) for kind, simulation in simulations.items()]
    tables = [
        "\n".join(["[[stages]]", *(f"{key} = {_toml(value, root)}" for key, value in stage.items())])
        for stage in stages
    ]
    write_whole(root / _DEMO, ("\n\n".join([_TITLE, 'output = "results"', *tables]) + "\n").encode())
    config = load_config(root / _DEMO)
    with console.watching() as watcher:
        finished = runner.run(config, watcher)
    console.finished(finished)
    for configured, result in zip(config.stages, finished.stages, strict=True):
        frames = {
            table.name: pl.read_parquet(finished.path / table.name / f"{configured.params.name}.parquet")
            for table in configured.stage.tables
            if table.name not in result.omitted
        }
        error_table = simulations[configured.stage.kind].error_table(root / "data" / configured.stage.kind, frames)
        sys.stdout.write(f"{configured.params.name}: {simulations[configured.stage.kind].HEADING}\n\n{error_table}\n\n")
    page = write_report(latest_run(config.output), config.output)
    sys.stdout.write(
        f"{finished.path}\n\nReport: {page}\nConfig: {root / _DEMO}\n"
        f'Next: thresher query {output / "results"} "FROM before_after_operating_points"\n'
    )


def _refuse_others(root: Path, output: Path) -> None:
    names = (_DEMO, *(f"data/{entry.kind}" for entry in STAGES), "results")
    taken = next((root / name for name in names if (root / name).exists()), None)
    with suppress(OSError):
        if read_file(root / _DEMO, most=len(_TITLE)) == _TITLE.encode():
            return
    if taken is not None:
        message = f"--output {output}: {taken} is there, and is not of a demo"
        raise UsageError(message, remedy="Choose another folder with --output.")


def _toml(value: object, root: Path) -> str:
    """A value of the demo's config as TOML, paths relative to the folder, so that it can be moved."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item, root)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(item, root) for item in value)}]"
    if isinstance(value, str) and Path(value).is_relative_to(root):
        return json.dumps(Path(value).relative_to(root).as_posix())
    return json.dumps(value)
