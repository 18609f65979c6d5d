"""`thresher sample`: rows to label, drawn so that few labels tell most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import Note
from ..sources.paths import local_path
from .session import echo, reporting

if TYPE_CHECKING:
    from .console import Console

app = typer.Typer()


@app.command()
def sample(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config, a TOML file.", show_default=False)],
    size: Annotated[int, typer.Option("--size", "-n", min=1, help="How many rows to label.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="The sheet: a .csv or .parquet file.", show_default=False)
    ],
    stage: Annotated[
        str, typer.Argument(metavar="STAGE", help="The stage whose predictions are meant, if there are several.")
    ] = "",
    by: Annotated[
        str, typer.Option("--by", metavar="COLUMNS", help="Strata: score, and grouping columns, with commas.")
    ] = "score",
    labelled: Annotated[
        str | None,
        typer.Option("--labelled", metavar="FILE", help="The sheet of an earlier draw, after which this one goes on."),
    ] = None,
    columns: Annotated[
        str, typer.Option("--columns", metavar="COLUMNS", help="Columns to look at, with commas: text, link.")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed draws other rows.")] = 0,
    variables: Annotated[
        list[str] | None, typer.Option("--var", metavar="NAME=VALUE", help="Set a variable of the config.")
    ] = None,
) -> None:
    """Draw the rows of predictions to label, into a sheet; the first rows of it are a sample, too. Print its path.

    Example:  thresher sample my.toml --size 1000 --columns text --to sheet.csv
    """
    with reporting(ctx) as console:
        from ..runs.config import load_config  # noqa: PLC0415 - help needs none of it
        from ..runs.sampling import Wish, checked_sheet, drawn_sheet, write_sheet  # noqa: PLC0415 - likewise
        from .console import parse_variable  # noqa: PLC0415 - likewise

        parsed = load_config(config, values=dict(parse_variable(text) for text in variables or ()))
        target = checked_sheet(parsed, config, local_path(to, Path.cwd(), what="--to"))
        before = None if labelled is None else str(local_path(labelled, Path.cwd(), what="--labelled"))
        wish = Wish(size, _names(by), before, _names(columns), seed)
        sheet = drawn_sheet(parsed, stage, wish, lambda text: _say(console, text))
        write_sheet(sheet, target)
        echo(target.path)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _say(console: Console, text: str) -> None:
    if isinstance(text, Note):
        console.log("info", f"note: {text}", event="note")
    else:
        console.log("warning", text, event="warning")
