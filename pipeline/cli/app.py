"""The command line: parse and call. The result goes to stdout, everything else to stderr."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ..base.errors import Note, ThresherError, UsageError
from ..base.paths import is_remote, local_path
from ..stages import STAGES, StageEntry, find_stage
from . import reading
from .session import (
    LOG_FORMATS,
    asks_for_json,
    cleaned_faults,
    echo,
    execute,
    forgive_full_stderr,
    open_closed_streams,
    parse_named,
    parse_setting,
    reporting,
    usage_errors_as_json,
    watched,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Commands(TyperGroup):
    """Adds a command for each stage, made from its parameter class when it is called, not when it is listed."""

    _listing = _json = False

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **options: Any) -> Any:  # noqa: ANN401
        """Parse the command line."""
        self._json = asks_for_json(args)
        with usage_errors_as_json(wanted=self._json), cleaned_faults():
            return super().make_context(info_name, args, *more, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own types
        """Find the command that is meant; one that is not there is told with the nearest, stages among them."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            message = getattr(error, "message", "")
            nearest = get_close_matches(args[0].replace("_", "-"), self.list_commands(ctx)) if args else []
            if message and nearest and "Did you mean" not in message:
                names = ", ".join(map(repr, nearest))
                error.message = f"{message.rstrip('.')}. Did you mean {names}?"  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own types
        """Parse the arguments of the command and call it."""
        with usage_errors_as_json(wanted=self._json), cleaned_faults():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own context
        """Return the names in the order of the help."""
        return [*super().list_commands(ctx), *(entry.kind.replace("_", "-") for entry in STAGES)]

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own types
        """Write the help, for which names and summaries are enough."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own command
        """Return a command by name."""
        if (command := super().get_command(ctx, cmd_name)) is not None:
            return command
        entry = find_stage(cmd_name.replace("-", "_"))
        if entry is None:
            return None
        from .running import placeholder, stage_command  # noqa: PLC0415 - loads the stage

        return placeholder(entry) if self._listing else stage_command(entry)


app = typer.Typer(
    name="thresher",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Precision and recall at every threshold, with or without gold labels, over Parquet data of any size.\n\n"
    "[bold]Try it:[/bold]  thresher demo  ·  thresher init > my.toml  ·  thresher run my.toml",
)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The config, a TOML file.", show_default=False)]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="DIR", help="Results folder.", show_default=False)
]
EngineName = Annotated[str | None, typer.Option("--engine", help="duckdb or spark.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, the value as in TOML.", show_default=False),
]
Vars = Annotated[
    list[str] | None,
    typer.Option(
        "--var", metavar="NAME=VALUE", help="Set a variable of the config, or the day, ds.", show_default=False
    ),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", help="text, or json for one object per line.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - a flag
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only here

        typer.echo(version("thresher"))
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    _version: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
    log_format: Annotated[str, typer.Option("--log-format", help="text, or json for one object per line.")] = "text",
) -> None:
    if log_format not in LOG_FORMATS:
        message = "--log-format must be text or json"
        raise typer.BadParameter(message)
    ctx.obj = log_format


@app.command()
def run(
    ctx: typer.Context,
    config: ConfigPath,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="STAGE", help="Run only this stage; the others keep their last results."),
    ] = None,
    output: Output = None,
    engine: EngineName = None,
    variables: Vars = None,
    settings: Settings = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Read every input file again.")] = False,  # noqa: FBT002
    gates_json: Annotated[
        str | None, typer.Option("--gates-json", metavar="PATH", help="Write what the gates found as JSON.")
    ] = None,
    gates_junit: Annotated[
        str | None, typer.Option("--gates-junit", metavar="PATH", help="The same as JUnit XML, for CI systems.")
    ] = None,
    quiet: Quiet = False,  # noqa: FBT002 - a flag
    log_format: LogFormat = None,
) -> None:
    """Run the stages of a config and publish one run; print its path. A range of days is one run for each day.

    Example:  thresher run nightly.toml --var ds=2026-11-01..2026-11-20
    """
    with reporting(ctx, quiet=quiet, log_format=log_format) as console:
        from ..runs.config import load_config  # noqa: PLC0415
        from ..runs.written import of_options  # noqa: PLC0415
        from .running import run_days  # noqa: PLC0415 - help needs none of it

        paths = {"output": output, "gates_json": gates_json, "gates_junit": gates_junit}
        overrides = _overrides(settings, engine=engine, **paths) | ({"cache": False} if no_cache else {})

        def run_once(values: Mapping[str, str]) -> Path:
            try:
                with of_options(paths):
                    checked = load_config(config, overrides=overrides, values=values).only(only or [])
            except ThresherError:
                from ..runs.gate_outcomes import remove_of_faulty  # noqa: PLC0415 - only a faulty config needs it

                remove_of_faulty(config, overrides, values)
                raise
            execute(checked, console)
            return checked.output

        run_days(parse_named(variables), run_once, console)


@app.command()
def check(ctx: typer.Context, config: ConfigPath, variables: Vars = None, settings: Settings = None) -> None:
    """Check a config and its inputs, reading only schemas and footers; run nothing.

    Example:  thresher check nightly.toml
    """
    with reporting(ctx):
        from ..report.summary import counted  # noqa: PLC0415
        from ..runs.config import load_config  # noqa: PLC0415
        from ..runs.opening import open_inputs  # noqa: PLC0415
        from ..sources.bindings import bindings_in_words  # noqa: PLC0415

        checked = load_config(config, overrides=_overrides(settings), values=parse_named(variables))
        checked.check_engine()
        for configured in checked.stages:
            if configured.upstream:
                echo(f"{configured.params.name}  reads tables of {', '.join(configured.upstream)}")
                continue
            opened = open_inputs(checked, configured)
            for source in opened.sources.values():
                noun = "file" if source.spec.path else "table"
                numbers = f"{counted(source.n_files, noun)}, {counted(source.rows, 'row')}"
                if source.files_left_out:
                    numbers += f"; {counted(source.files_left_out, 'file')} not opened, since where leaves them out"
                echo(f"{opened.name}  {source.name}: {numbers}")
                for table in source.tables:
                    echo(f"{opened.name}  {source.name}: {table.words}")
            for line in bindings_in_words(opened.bindings):
                echo(f"{opened.name}  {line}")
            for warning in opened.plan.warnings:
                echo(f"{opened.name}  {'note' if isinstance(warning, Note) else 'warning'}: {warning}")
        for gate in checked.gates:
            echo(f"gate {gate.name}  {gate.words}")
        echo(f"{config}: no faults found")


@app.command()
def render(
    ctx: typer.Context, config: ConfigPath, engine: EngineName = None, variables: Vars = None, settings: Settings = None
) -> None:
    """Print the SQL that a run would execute, relation by relation.

    Example:  thresher render nightly.toml --engine spark
    """
    with reporting(ctx):
        from ..runs.config import load_config  # noqa: PLC0415
        from ..runs.evaluation import render_opened, session_settings  # noqa: PLC0415
        from ..runs.opening import open_inputs  # noqa: PLC0415

        parsed = load_config(config, overrides=_overrides(settings, engine=engine), values=parse_named(variables))
        if settings_text := session_settings(parsed.engine):
            echo(settings_text)
        for configured in parsed.stages:
            if configured.upstream:
                upstream = ", ".join(configured.upstream)
                echo(f"-- {configured.params.name}: reads tables of {upstream}, which are not there yet\n")
                continue
            opened = open_inputs(parsed, configured)
            echo(render_opened(opened, dialect=parsed.engine))


@app.command()
def demo(
    ctx: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for data and results.")] = Path(
        "demo"
    ),
    quiet: Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Generate data with known truth, run every stage on it, and report how close the estimates are.

    Example:  thresher demo --output demo
    """
    with reporting(ctx, quiet=quiet) as console:
        from .running import run_demo  # noqa: PLC0415

        run_demo(output, console)


@app.command()
def doctor(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files, or patterns in quotes.")],
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="CHARACTER", help="As for init.", show_default=False)
    ] = None,
    format_: Annotated[str | None, typer.Option("--format", help="As for init.", show_default=False)] = None,
) -> None:
    """Say what your files hold, what can be evaluated with them, and what is missing for the rest.

    Example:  thresher doctor scores.csv gold.jsonl
    """
    with reporting(ctx):
        from ..runs.proposing import diagnose  # noqa: PLC0415 - only here
        from ..sources.formats import checked_keys  # noqa: PLC0415 - only here

        character, kind = checked_keys(delimiter, format_)
        write(diagnose((entry.load() for entry in STAGES), files, Path.cwd(), character, kind))


@app.command()
def init(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STAGE|FILE",
            help="The task, by default before_after, or what the files are enough for; and files, as of --from.",
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="FILE", help="Propose a config for this file; INPUT=FILE says which input it is."
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", metavar="CHARACTER", help="What separates the columns of CSV files; tab for a tab."
        ),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="Format of the files, if their names end in something else: csv.")
    ] = None,
) -> None:
    """Write a commented starter config to stdout, or one proposed from your files.

    Example:  thresher init threshold_sweep scores.csv > my.toml
    """
    with reporting(ctx):
        from ..base.sql_files import resource_folder  # noqa: PLC0415

        stage, more = _stage_and_files(words or [])
        files = [*(files or ()), *more]
        entry = stage or STAGES[0]
        if files:
            from ..runs.proposing import propose  # noqa: PLC0415 - only here
            from ..sources.formats import checked_keys  # noqa: PLC0415 - only here

            character, kind = checked_keys(delimiter, format_)
            stages = [each.load() for each in ([stage] if stage else STAGES)]
            typer.echo(propose(stages, files, Path.cwd(), delimiter=character, format_=kind), nl=False)
            return
        if delimiter is not None or format_ is not None:
            message = "--delimiter and --format say how files are written, and no file was named"
            raise UsageError(message, remedy=f"Name it: thresher init {entry.kind} FILE --delimiter ';'")
        text = (resource_folder("configs") / f"{entry.kind}.toml").read_text(encoding="utf-8")
        typer.echo(text.replace("docs/", f"{resource_folder('docs')}/"), nl=False)


app.add_typer(reading.app)


def _stage_and_files(words: list[str]) -> tuple[StageEntry | None, list[str]]:
    """Tell the stage that `init` is asked for, which comes first, from files."""
    entry = find_stage(words[0].replace("-", "_")) if words else None
    if entry is None and words and words[0].replace("-", "_").isidentifier() and not Path(words[0]).exists():
        message = f"no stage is called {words[0]!r}, and no file"
        raise UsageError(message, remedy=f"Known stages: {', '.join(each.kind for each in STAGES)}.")
    return entry, words[1:] if entry else words


def _overrides(settings: list[str] | None, *, engine: str | None = None, **paths: str | None) -> dict[str, Any]:
    values = dict(parse_setting(text) for text in settings or ())
    for key, path in paths.items():
        if path is not None:
            values[key] = _absolute(path, what=f"--{key.replace('_', '-')}")
    if engine is not None:
        values["engine"] = engine
    return values


def _absolute(path: str, *, what: str) -> str:
    """A path as the config takes it; a reference in it is one of the config."""
    if what == "--output" and is_remote(path):
        return path
    has_reference = "${" in path and "://" not in path
    if has_reference:
        return str(Path(str(Path.cwd()).replace("${", "$${"), path))
    return str(local_path(path, Path.cwd(), what=what)).replace("${", "$${")


def main() -> None:
    """Entry point of the command `thresher`."""
    open_closed_streams()
    forgive_full_stderr()
    with watched():
        app()
