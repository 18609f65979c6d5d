"""The floor of `thresher --help`: a Typer program with rich help and nothing behind it."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="bare",
    add_completion=False,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="[bold]Nothing[/bold] at all.",
)


@app.command()
def first() -> None:
    """Do nothing."""


@app.command()
def second() -> None:
    """Do nothing either."""


if __name__ == "__main__":
    app()
