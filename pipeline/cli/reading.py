"""Commands that read published results: each one asks `reporting` for its manners and a module for its work."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..base.errors import Note, UsageError
from ..base.paths import local_path
from .session import echo, parse_named, reporting, width_of_output, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..report.pictures import PictureFormat
    from .session import Console


app = typer.Typer()

Results = Annotated[
    str,
    typer.Argument(metavar="RESULTS", help="The output of a run: a folder, or s3://bucket/folder.", show_default=False),
]

RunName = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="A kept run by generation, run id or folder.", show_default="latest"),
]


Metric = Annotated[str, typer.Option("--metric", "-m", help="The number; default: the main one of the stage.")]
Group = Annotated[
    list[str] | None, typer.Option("--group", "-g", metavar="NAME=VALUE", help="A group; default: the total.")
]
KeptRun = Annotated[str, typer.Option("--run", metavar="RUN", help="A kept run; default: the latest.")]


@contextmanager
def reading(ctx: typer.Context, results: str) -> Iterator[Path]:
    """Give the folder in which results can be read, and report errors as `reporting` does."""
    with reporting(ctx):
        from ..runs.written import results_at  # noqa: PLC0415 - help needs none of it

        with results_at(results) as folder:
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
        from .showing import write_answer  # noqa: PLC0415

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
        from ..report.published import published_run  # noqa: PLC0415 - help needs none of it
        from ..report.text import check_format  # noqa: PLC0415
        from .showing import FORMATS, show_run  # noqa: PLC0415

        check_format(format_, FORMATS)
        show_run(published_run(folder, run), tuple(stages or ()), format_, methods_only=methods)


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
        from ..runs.written import results_at  # noqa: PLC0415
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
        from ..report.summary import counted  # noqa: PLC0415 - help needs none of it
        from ..runs.written import verify_at  # noqa: PLC0415

        verified = verify_at(results, repair=repair)
        for note in verified.notes:
            console.log("info", note, event="note")
        typer.echo(f"{results}: {counted(verified.runs, 'run')}, {counted(verified.files, 'file')}, all as published")


@app.command()
def explain(
    ctx: typer.Context,
    results: Results,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="Name of the stage.", show_default=False)],
    metric: Metric = "",
    threshold: Annotated[
        float | None, typer.Option("--threshold", "-t", help="Default: that of the first operating point.")
    ] = None,
    group: Group = None,
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
    run: KeptRun = "",
    format_: Annotated[str, typer.Option("--format", "-f", help="text, markdown, csv or json.")] = "text",
) -> None:
    """Explain where a number comes from: definition, counts, inputs, and the rows behind it.

    Example:  thresher explain results before_after --threshold 6.5 --group source=north
    """
    with reading(ctx, results) as folder:
        from ..report.evidence import Wish  # noqa: PLC0415
        from ..report.explaining import Shown, explain  # noqa: PLC0415
        from ..report.published import published_run  # noqa: PLC0415
        from .showing import write_checked, write_explanation  # noqa: PLC0415

        wanted = tuple(name.strip() for name in columns.split(",") if name.strip())
        shown = Shown(tuple(show or ()), rows, wanted, sql=sql, rows=rows != 0, profile=profile)
        wish = Wish(metric, threshold, tuple(group or ()))
        published = published_run(folder, run or None)
        if checked is not None:
            write_checked(published, stage, local_path(checked, Path.cwd(), what="--checked"))
            return
        write_explanation(explain(published, stage, wish, shown), format_, brief=bool(show))


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
    metric: Metric = "",
    criterion: Annotated[
        str, typer.Option("--criterion", "-c", help="Operating point, such as max_f1; default: the first.")
    ] = "",
    threshold: Annotated[float | None, typer.Option("--threshold", "-t", help="Threshold, in its place.")] = None,
    group: Group = None,
    run: KeptRun = "",
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
        from ..report.evidence import Wish  # noqa: PLC0415 - help needs none of it
        from ..report.planned import FORMATS, Goal, written  # noqa: PLC0415
        from ..report.planning import Expectation, plans_of  # noqa: PLC0415
        from ..report.text import check_format  # noqa: PLC0415

        check_format(format_, FORMATS)
        plans = plans_of(
            results,
            stage,
            run,
            Wish(metric, threshold, tuple(group or ()), criterion=criterion, verb="planned"),
            Expectation(metric, expected, deviation, design_effect, share_positive),
            Goal(width, difference, margin, claim, power, confidence),
            spelled,
        )
        write(written(plans, format_, width_of_output()))


def spelled(name: str) -> str:
    """The option of a parameter."""
    return f"--{name.replace('_', '-')}"


@app.command()
def report(
    ctx: typer.Context,
    results: Results,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The page; RESULTS/report.html if not given.")
    ] = None,
    run: RunName = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Write the report of a run, one HTML page that needs no network; print its path.

    Example:  thresher report results
    """
    with reading(ctx, results) as folder:
        from ..report.published import published_run  # noqa: PLC0415 - help needs none of it

        path = None if output is None else local_path(output, Path.cwd(), what="--output")
        published = published_run(folder, run)
        from ..report.page import FILE_NAME, write_report  # noqa: PLC0415 - help needs none of it
        from ..runs.recorded import refuse_written  # noqa: PLC0415 - likewise
        from ..runs.written import PAGE, OwnFile, put_beside  # noqa: PLC0415 - likewise

        if path is not None and path.resolve() != folder.resolve() / FILE_NAME:
            refuse_written(published.record, published.folder, OwnFile("--output", path, PAGE))
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
        from ..report.pictures import figures_of, wanted, write_plots  # noqa: PLC0415 - help needs none of it
        from ..report.published import published_run  # noqa: PLC0415 - likewise
        from ..runs.recorded import refuse_written  # noqa: PLC0415 - likewise
        from ..runs.written import PICTURE, OwnFile  # noqa: PLC0415 - likewise

        if form not in {"svg", "png", "pdf"}:
            message = f"--format {form}: there is no such format"
            raise UsageError(message, remedy="Choose svg, png or pdf.")
        picture_format = cast("PictureFormat", form)
        values = parse_named(group, "--group", "--group source=north; NULL is written null.")
        published = published_run(results_here, run)
        chosen = wanted(figures_of(published, stages or ()), figures or ())
        if list_:
            for figure in chosen:
                echo(figure.name)
            return
        if to is None:
            message = "plot needs a folder for the files"
            raise UsageError(message, remedy="Add --to DIR; or --list, which prints the names of the figures.")
        folder = local_path(to, Path.cwd(), what="--to")
        target = OwnFile("--to", folder / f"figure.{picture_format}", PICTURE)
        refuse_written(published.record, published.folder, target)
        for path in write_plots(published, chosen, values, folder, picture_format):
            echo(path)


@app.command()
def expire(
    ctx: typer.Context,
    results: Results,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", help="Keep the last N runs.")] = None,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", metavar="D", help="Keep runs of the last D days.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Remove old runs, and what is as old of the records of attempts; the latest run always stays.

    With both options a run stays that either keeps.

    Example:  thresher expire results --keep 30 --keep-days 90
    """
    with reporting(ctx) as console:
        from ..runs.written import expire_at  # noqa: PLC0415 - help needs none of it
        from ..storage.publish import Keeping  # noqa: PLC0415 - likewise

        expired = expire_at(results, Keeping(keep, keep_days), dry_run=dry_run)
        for note in expired.notes:
            console.log("info", note, event="expire")
        from ..report.summary import counted  # noqa: PLC0415 - likewise

        for name in expired.removed:
            echo(f"{'would remove' if dry_run else 'removed'} {name}")
        removed = f"{counted(len(expired.removed), 'run')} and {counted(expired.attempts, 'record')} of attempts"
        echo(f"{removed} {'would be removed' if dry_run else 'removed'}")
        kept = expired.kept[0] if len(expired.kept) == 1 else f"{expired.kept[0]} to {expired.kept[-1]}"
        stay = "would stay" if dry_run else "stays" if len(expired.kept) == 1 else "stay"
        echo(f"{counted(len(expired.kept), 'run')} {stay}: {kept}")


@app.command()
def sample(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config, a TOML file.", show_default=False)],
    size: Annotated[int, typer.Option("--size", "-n", min=1, help="How many rows to label.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="The sheet: a .csv or .parquet file.", show_default=False)
    ],
    stage: Annotated[
        str, typer.Argument(metavar="STAGE", help="The stage that is meant, if several have rows to draw.")
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
    """Draw predictions, matches or documents to label, into a sheet whose first rows are a sample, too. Print its path.

    Example:  thresher sample my.toml --size 1000 --columns text --to sheet.csv
    """
    with reporting(ctx) as console:
        from ..runs.config import load_config  # noqa: PLC0415 - help needs none of it
        from ..runs.sampling import Wish, checked_sheet, drawn_sheet, write_sheet  # noqa: PLC0415 - likewise

        parsed = load_config(config, values=parse_named(variables))
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
