"""Figures of a published run as files: which there are, and writing those that were asked for."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...records import dataclass
from ...runs.config_faults import near
from ...runs.written import picture_file
from ...storage.durable import make_folder
from ...tables.groupings import values_text, written_groups
from ...visible_text import cleaned
from ..words import utc_time
from .panels import Group, Panels, panels
from .pictures import PictureFormat, picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..published import PublishedRun

MOST_TOLD = 20
MOST_ROWS = 1000
_UNSAFE = re.compile(r"[^\w.,=+-]+")
_LONGEST_NAME = 120


@dataclass(frozen=True)
class NamedFigure:
    """A figure of a run.

    Attributes:
        stage: Name of its stage.
        panels: The figure, by group.
    """

    stage: str
    panels: Panels

    @property
    def name(self) -> str:
        """Its name in the run: `<stage>.<figure>`."""
        return f"{self.stage}.{self.panels.figure.name}"


def figures_of(run: PublishedRun, stages: Sequence[str] = ()) -> tuple[NamedFigure, ...]:
    """Return the figures of some stages of a run, all of them by default.

    Raises:
        UsageError: the run has no stage of that name.
    """
    return tuple(NamedFigure(stage.name, panels(figure)) for stage in run.chosen(stages) for figure in stage.figures())


def wanted(figures: Sequence[NamedFigure], names: Sequence[str]) -> tuple[NamedFigure, ...]:
    """Return the figures of these names, `<stage>.<figure>` or `<figure>` of every stage; all if no name is there.

    Raises:
        UsageError: no figure has that name.
    """
    for name in names:
        if all(name not in {figure.name, figure.panels.figure.name} for figure in figures):
            known_names = [figure.name for figure in figures]
            short_names = [figure.panels.figure.name for figure in figures]
            message = f"no figure is called {name!r}{near(name, [*known_names, *short_names])}"
            more = f" and {len(known_names) - MOST_TOLD:,} more" if len(known_names) > MOST_TOLD else ""
            raise UsageError(message, remedy=f"The figures are: {', '.join(known_names[:MOST_TOLD]) or 'none'}{more}.")
    return tuple(figure for figure in figures if not names or {figure.name, figure.panels.figure.name} & {*names})


def write_plots(
    run: PublishedRun, figures: Sequence[NamedFigure], group: dict[str, str], folder: Path, form: PictureFormat
) -> Iterator[Path]:
    """Write figures as files, each whole or not at all, and return their paths one by one.

    Args:
        run: The run that they belong to.
        figures: The figures.
        group: Values by grouping column, as people write them; without any, all rows, or the first group of a figure
            that has no rows for all.
        folder: Where the files go; it is made if it is not there.
        form: The format.

    Raises:
        UsageError: no figure has the group.
        CannotCreateError: the folder cannot be written.
    """
    chosen = [(figure, _group(figure.panels, group)) for figure in figures]
    drawn = [(figure, own_group) for figure, own_group in chosen if own_group is not None]
    if not drawn:
        raise _no_group(figures, group)
    make_folder(folder, "--to")
    taken: set[str] = set()
    version = run.record.get("versions", {}).get("thresher", "")
    for figure, own_group in drawn:
        source = f"{figure.stage} · {utc_time(run.published_at)} · run {run.folder.name} · thresher {version}"
        content = picture(figure.panels.at_most(MOST_ROWS), own_group, form=form, source=source)
        path = folder / f"{_file_name(figure, own_group, taken)}.{form}"
        picture_file(path, "--to").replace(content)
        yield path


def _group(drawn: Panels, values: dict[str, str]) -> Group | None:
    """The group of these values; None if the figure does not have it, or shows all groups at once.

    `null` is NULL alone; the text `null` stands in quotes.
    """
    if not values:
        return drawn.first
    meanings: Iterator[Mapping[str, str | None]] = (
        {name: None if value == "null" else value for name, value in meant.items()} for meant in written_groups(values)
    )
    matches = (group for meant in meanings for group in drawn.spans if _is_of(group, meant))
    return next(matches, None)


def _is_of(group: Group, values: Mapping[str, str | None]) -> bool:
    names = group.grouping.split(",")
    return sorted(names) == sorted(values) and group.text == values_text([values[name] for name in names])


def chosen_group(drawn: Panels, values: dict[str, str]) -> Group:
    """Return a group of a figure, by its values as people write them; without any as in `write_plots`.

    Raises:
        UsageError: the figure has no such group.
    """
    group = _group(drawn, values)
    if group is None:
        raise _no_group([NamedFigure("", drawn)], values)
    return group


def _no_group(figures: Sequence[NamedFigure], group: dict[str, str]) -> UsageError:
    name = ", ".join(f"{column}={value}" for column, value in group.items())
    groups = dict.fromkeys(entry.label for figure in figures for entry in figure.panels.spans)
    if not figures:
        return UsageError("there is no figure to write", remedy="See --list; a stage without any row has no figure.")
    told = "; ".join(list(groups)[:MOST_TOLD])
    more = f"; and {len(groups) - MOST_TOLD:,} more" if len(groups) > MOST_TOLD else ""
    return UsageError(f"no figure has the group {name}", remedy=f"Groups, with their columns first: {told}{more}.")


def _file_name(figure: NamedFigure, group: Group, taken: set[str]) -> str:
    """A name that every file system takes: what is not a letter, a digit or one of a few signs becomes `_`."""
    of_group = "" if group.is_total else f".{group.grouping}={group.text}"
    name = _UNSAFE.sub("_", cleaned(f"{figure.name}{of_group}", layout=""))[:_LONGEST_NAME]
    numbered_names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(candidate for candidate in numbered_names if candidate.lower() not in taken)
    taken.add(free.lower())
    return free
