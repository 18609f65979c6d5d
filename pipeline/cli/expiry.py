"""`thresher expire`: old runs are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .reading import Results  # noqa: TC001 - typer reads it
from .session import echo, reporting

if TYPE_CHECKING:
    from ..storage.expire import Expired

app = typer.Typer()


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
        from ..runs.results_location import expire_at  # noqa: PLC0415 - help needs none of it
        from ..storage.expire import Keeping  # noqa: PLC0415 - help needs none of it

        expired = expire_at(results, Keeping(keep, keep_days), dry_run=dry_run)
        for note in expired.notes:
            console.log("info", note, event="expire")
        _tell(expired, dry_run=dry_run)


def _tell(expired: Expired, *, dry_run: bool) -> None:
    from ..report.words import counted  # noqa: PLC0415 - help needs none of it

    for name in expired.removed:
        echo(f"{'would remove' if dry_run else 'removed'} {name}")
    removed = f"{counted(len(expired.removed), 'run')} and {counted(expired.attempts, 'record')} of attempts"
    echo(f"{removed} {'would be removed' if dry_run else 'removed'}")
    kept = expired.kept[0] if len(expired.kept) == 1 else f"{expired.kept[0]} to {expired.kept[-1]}"
    stay = "would stay" if dry_run else "stays" if len(expired.kept) == 1 else "stay"
    echo(f"{counted(len(expired.kept), 'run')} {stay}: {kept}")
