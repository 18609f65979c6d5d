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


@app.command()
def query(
    ctx: typer.Context,
    results: Results,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; `history.` holds all kept runs.")],
    format_: Annotated[str | None, typer.Option("--format", "-f", help="table, csv, json, jsonl or parquet.")] = None,
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
