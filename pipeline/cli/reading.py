"""Commands that read published results: each one asks `reporting` for its manners and a module for its work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.session import reporting
from pipeline.sources.paths import local_path

app = typer.Typer()

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="The output folder of a run.", show_default=False)]

RunName = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="A kept run by generation, run id or folder.", show_default="latest"),
]


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
    with reporting(ctx):
        from pipeline.cli.query import write_answer  # noqa: PLC0415

        write_answer(
            local_path(results, Path.cwd(), what="results"), sql, format_ or ("table" if sys.stdout.isatty() else "csv")
        )


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
    with reporting(ctx):
        from pipeline.cli.showing import show_run  # noqa: PLC0415 - help needs none of it

        folder = local_path(results, Path.cwd(), what="results")
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
        Path | None, typer.Option("--with", metavar="RESULTS2", help="Results folder of B.", show_default="the same")
    ] = None,
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown or json.")] = "text",
) -> None:
    """Show what changed between two runs: numbers, with paired tests where units are shared; inputs, config and code.

    Runs go by their generation, run id or folder.

    Example:  thresher diff results 41 42
    """
    with reporting(ctx):
        from pipeline.cli.differing import diff_runs  # noqa: PLC0415 - help needs none of it

        folder = local_path(results, Path.cwd(), what="results")
        other_folder = None if with_results is None else local_path(with_results, Path.cwd(), what="--with")
        diff_runs(folder, before, after, other_folder, format_)


@app.command()
def verify(
    ctx: typer.Context,
    results: Results,
    repair: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--repair", help="First rebuild the catalog, CURRENT and the chain from intact run folders.")
    ] = False,
) -> None:
    """Verify every published file, the catalog, and the chain of hashes that links them.

    Example:  thresher verify results
    """
    with reporting(ctx) as console:
        from pipeline.storage.verify import verify as verify_results  # noqa: PLC0415

        verified = verify_results(local_path(results, Path.cwd(), what="results"), repair=repair)
        for note in verified.notes:
            console.log("info", note)
        typer.echo(f"{results}: {verified.runs:,} runs, {verified.files:,} files, all as published")
