"""Commands that read published results: each one asks `reporting` for its manners and a module for its work."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..sources.paths import local_path
from .session import reporting

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer()

Results = Annotated[
    str,
    typer.Argument(metavar="RESULTS", help="The output of a run: a folder, or s3://bucket/folder.", show_default=False),
]

RunName = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="A kept run by generation, run id or folder.", show_default="latest"),
]


@contextmanager
def reading(ctx: typer.Context, results: str, what: str = "results") -> Iterator[Path]:
    """Give the folder in which results can be read, and report errors as `reporting` does."""
    with reporting(ctx):
        from ..runs.results_location import results_at  # noqa: PLC0415 - help needs none of it

        with results_at(results, what=what) as folder:
            yield folder


@app.command()
def query(
    ctx: typer.Context,
    results: Results,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; `history.` holds all kept runs.")],
    format_: Annotated[
        str | None, typer.Option("--format", "-f", help="table, csv, tsv, json, jsonl, parquet, markdown, latex.")
    ] = None,
) -> None:
    """Run SQL on the published results.

    Example:  thresher query results "FROM before_after_operating_points"
    """
    with reading(ctx, results) as folder:
        from .query import write_answer  # noqa: PLC0415

        write_answer(folder, sql, format_ or ("table" if sys.stdout.isatty() else "csv"))


@app.command()
def show(
    ctx: typer.Context,
    results: Results,
    stages: Annotated[
        list[str] | None, typer.Argument(metavar="STAGE", help="Only these stages.", show_default=False)
    ] = None,
    run: RunName = None,
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown or latex.")] = "text",
    methods: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--methods", help="In its place a paragraph for a methods section, numbers filled in.")
    ] = False,
) -> None:
    """Show the summary of a run again: warnings, the best thresholds with intervals, curves.

    Example:  thresher show results --format markdown
    """
    with reading(ctx, results) as folder:
        from .showing import show_run  # noqa: PLC0415 - help needs none of it

        show_run(folder, tuple(stages or ()), run, format_, methods_only=methods)


@app.command()
def diff(
    ctx: typer.Context,
    results: Results,
    before: Annotated[
        str | None, typer.Argument(metavar="A", help="A kept run.", show_default="the run before B")
    ] = None,
    after: Annotated[str | None, typer.Argument(metavar="B", help="A later one.", show_default="the latest")] = None,
    with_results: Annotated[
        str | None, typer.Option("--with", metavar="RESULTS2", help="Results folder of B.", show_default="the same")
    ] = None,
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown or json.")] = "text",
) -> None:
    """Show what changed between two runs: numbers, with paired tests where units are shared; inputs, config and code.

    Runs go by their generation, run id or folder.

    Example:  thresher diff results 41 42
    """
    with reading(ctx, results) as folder, ExitStack() as others:
        from ..runs.results_location import results_at  # noqa: PLC0415
        from .showing import diff_runs  # noqa: PLC0415 - help needs none of it

        second = None if with_results is None else others.enter_context(results_at(with_results, what="--with"))
        diff_runs(folder, before, after, second, format_)


@app.command()
def verify(
    ctx: typer.Context,
    results: Results,
    repair: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--repair", help="First rebuild the catalog and CURRENT from intact run folders.")
    ] = False,
) -> None:
    """Verify every published file, CURRENT and the catalog.

    Example:  thresher verify results
    """
    with reporting(ctx) as console:
        from ..report.words import counted  # noqa: PLC0415 - help needs none of it
        from ..runs.results_location import verify_at  # noqa: PLC0415

        verified = verify_at(results, repair=repair)
        for note in verified.notes:
            console.log("info", note, event="note")
        typer.echo(f"{results}: {counted(verified.runs, 'run')}, {counted(verified.files, 'file')}, all as published")


@app.command()
def explain(
    ctx: typer.Context,
    results: Results,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="Name of the stage.", show_default=False)],
    metric: Annotated[str, typer.Option("--metric", "-m", help="The number; default: the main one of the stage.")] = "",
    threshold: Annotated[
        float | None, typer.Option("--threshold", "-t", help="Default: that of the first operating point.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", metavar="NAME=VALUE", help="A group; default: the total.")
    ] = None,
    show: Annotated[
        list[str] | None, typer.Option("--show", "-s", metavar="SECTION", help="Show the rows of this section only.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", "-n", min=0, help="Most rows of a section; default: 10.")
    ] = None,
    columns: Annotated[
        str, typer.Option("--columns", metavar="INPUT.COLUMN,…", help="Columns of the inputs to show beside the rows.")
    ] = "",
    sql: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--sql", help="Print the SQL that counts it, too.")
    ] = False,
    profile: Annotated[
        str,
        typer.Option("--profile", "-p", metavar="TOOL", help="Why the number of another tool differs: scikit-learn, …"),
    ] = "",
    checked: Annotated[
        Path | None,
        typer.Option(
            "--checked", metavar="SHEET", help="A filled-in sheet, CSV: write it as Parquet for the input audited."
        ),
    ] = None,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="A kept run; default: the latest.")] = "",
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown, csv or json.")] = "text",
) -> None:
    """Explain where a number comes from: definition, counts, inputs, and the rows behind it.

    Example:  thresher explain results before_after --threshold 6.5 --group source=north
    """
    with reading(ctx, results) as folder:
        from ..report.explain.choosing import Wish  # noqa: PLC0415
        from ..report.explain.explaining import Shown, explain  # noqa: PLC0415
        from ..report.published import kept_run, latest_run  # noqa: PLC0415
        from .showing import write_checked, write_explanation  # noqa: PLC0415

        wanted = tuple(name.strip() for name in columns.split(",") if name.strip())
        shown = Shown(tuple(show or ()), rows, wanted, sql=sql, rows=rows != 0, profile=profile)
        wish = Wish(metric, threshold, tuple(group or ()))
        published = kept_run(folder, run) if run else latest_run(folder)
        if checked is not None:
            write_checked(published, stage, local_path(checked, Path.cwd(), what="--checked"))
            return
        write_explanation(explain(published, stage, wish, shown), format_, brief=bool(show))
