"""Commands that draw published results: the report, and its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..sources.paths import local_path
from .reading import Results, reading
from .session import echo

if TYPE_CHECKING:
    from ..report.figures.pictures import PictureFormat
    from ..report.published import PublishedRun

app = typer.Typer()

RunName = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="A kept run: its generation or run id; the latest if not given."),
]


def _run(results: Path, name: str | None) -> PublishedRun:
    from ..report.published import kept_run, latest_run  # noqa: PLC0415 - help needs none of it

    return latest_run(results) if name is None else kept_run(results, name)


@app.command()
def report(
    ctx: typer.Context,
    results: Results,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; RESULTS/report.html if not given."),
    ] = None,
    run: RunName = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Write the report of a run, one HTML page that needs no network; print its path.

    Example:  thresher report results
    """
    with reading(ctx, results) as folder:
        path = None if output is None else local_path(output, Path.cwd(), what="--output")
        published = _run(folder, run)
        from ..report.page.page import FILE_NAME, write_report  # noqa: PLC0415 - help needs none of it
        from ..runs.recorded import refuse_written  # noqa: PLC0415 - likewise
        from ..runs.results_location import put_beside  # noqa: PLC0415 - likewise
        from ..runs.written import report_file  # noqa: PLC0415 - likewise

        if path is not None and path.resolve() != folder.resolve() / FILE_NAME:
            refuse_written(published.record, published.folder, report_file(path))
        written = write_report(published, folder, path)
        echo(put_beside(results, written, "text/html") if path is None else written)
        if open_:
            typer.launch(written.as_uri())


@app.command()
def plot(
    ctx: typer.Context,
    results: Results,
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="STAGE.FIGURE or FIGURE; all if not given.", show_default=False),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DIR", help="Folder of the files.", show_default=False)
    ] = None,
    form: Annotated[str, typer.Option("--format", "-f", help="svg, png or pdf.")] = "svg",
    stages: Annotated[
        list[str] | None, typer.Option("--stage", metavar="STAGE", help="Only figures of this stage.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME=VALUE", help="A group, with every grouping column; else all rows."),
    ] = None,
    run: RunName = None,
    list_: Annotated[bool, typer.Option("--list", help="Print the names of the figures and stop.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Write figures of a run as files, without a browser; print their paths.

    Example:  thresher plot results by_threshold --to figures --format png
    """
    with reading(ctx, results) as results_here:
        picture_format = _format(form)
        values = dict(_group_value(text) for text in group or ())
        published = _run(results_here, run)
        from ..report.figures.pictures import figures_of, wanted, write_plots  # noqa: PLC0415 - help needs none of it
        from ..runs.recorded import refuse_written  # noqa: PLC0415 - likewise
        from ..runs.written import picture_file  # noqa: PLC0415 - likewise

        chosen = wanted(figures_of(published, stages or ()), figures or ())
        if list_:
            for figure in chosen:
                echo(figure.name)
            return
        if to is None:
            message = "plot needs a folder for the files"
            raise UsageError(message, remedy="Add --to DIR; or --list, which prints the names of the figures.")
        folder = local_path(to, Path.cwd(), what="--to")
        refuse_written(published.record, published.folder, picture_file(folder / f"figure.{picture_format}", "--to"))
        for path in write_plots(published, chosen, values, folder, picture_format):
            echo(path)


def _format(name: str) -> PictureFormat:
    formats: dict[str, PictureFormat] = {"svg": "svg", "png": "png", "pdf": "pdf"}
    if name not in formats:
        message = f"--format {name}: there is no such format"
        raise UsageError(message, remedy=f"Choose {', '.join(list(formats)[:-1])} or pdf.")
    return formats[name]


def _group_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"--group {text}: write NAME=VALUE"
        raise UsageError(message, remedy="For example --group source=north; NULL is written null.")
    return name, value
