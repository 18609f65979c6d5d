"""`thresher plan`: how much more data a wanted interval or test needs."""

from __future__ import annotations

from typing import Annotated

import typer

from .session import reporting
from .terminal import width_of_output, write

app = typer.Typer()


@app.command()
def plan(
    ctx: typer.Context,
    results: Annotated[
        str | None,
        typer.Argument(
            metavar="RESULTS", help="The output of a pilot run; without, see --expected.", show_default=False
        ),
    ] = None,
    width: Annotated[
        float | None, typer.Option("--width", "-w", help="Wanted width of the interval, upper less lower limit.")
    ] = None,
    difference: Annotated[
        float | None, typer.Option("--difference", "-d", help="Difference that a test is to find.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin", help="Difference of two systems that a test is to rule out; --difference is the true one."
        ),
    ] = None,
    claim: Annotated[
        str, typer.Option("--claim", help="What a test with a margin shows: not_worse or equivalent.")
    ] = "not_worse",
    power: Annotated[float, typer.Option("--power", help="Probability that the test shows it.")] = 0.8,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Level of the interval; default: that of the pilot, or 0.95.")
    ] = None,
    stage: Annotated[str, typer.Option("--stage", help="Stage of the pilot; default: all.")] = "",
    metric: Annotated[str, typer.Option("--metric", "-m", help="The number; default: the main one of the stage.")] = "",
    criterion: Annotated[
        str, typer.Option("--criterion", "-c", help="Operating point, such as max_f1; default: the first.")
    ] = "",
    threshold: Annotated[float | None, typer.Option("--threshold", "-t", help="Threshold, in its place.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", metavar="NAME=VALUE", help="A group; default: the total.")
    ] = None,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="A kept run; default: the latest.")] = "",
    expected: Annotated[
        float | None, typer.Option("--expected", help="Without a pilot: the expected share, or area for roc_auc.")
    ] = None,
    deviation: Annotated[
        float | None,
        typer.Option("--deviation", help="Without a pilot: standard deviation between units, or of their differences."),
    ] = None,
    design_effect: Annotated[
        float | None, typer.Option("--design-effect", help="Without a pilot: variance over that of independent rows.")
    ] = None,
    share_positive: Annotated[
        float | None, typer.Option("--share-positive", help="Without a pilot: share of positives among the rows.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown, latex, csv or json.")] = "text",
) -> None:
    """Say how many events, documents, queries or labels an interval of a wanted width, or a test, needs.

    Examples:  thresher plan results --stage before_after --metric recall --width 0.05

    thresher plan --metric precision --expected 0.9 --width 0.05
    """
    with reporting(ctx):
        from ..report.explain.choosing import Wish  # noqa: PLC0415 - help needs none of it
        from ..report.planning.expectations import Expectation  # noqa: PLC0415
        from ..report.planning.pilots import Goal  # noqa: PLC0415
        from ..report.planning.planning import Asked, plans_of  # noqa: PLC0415
        from ..report.planning.writing import check_format, written  # noqa: PLC0415

        check_format(format_)
        asked = Asked(
            results,
            stage,
            run,
            Wish(metric, threshold, tuple(group or ()), criterion=criterion, verb="planned"),
            Expectation(metric, expected, deviation, design_effect, share_positive),
            Goal(width, difference, margin, claim, power, confidence),
            spelled,
        )
        write(written(plans_of(asked), format_, width_of_output()))


def spelled(name: str) -> str:
    """The option of a parameter."""
    return f"--{name.replace('_', '-')}"
