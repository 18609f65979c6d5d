"""What the page shows of one stage: its groups, key numbers and figures, read once from a published run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass
from ..figures.panels import Group, Panels, numbered, panels
from ..words import counted

if TYPE_CHECKING:
    from ...stages.figures import KeyNumber
    from ..published import PublishedStage

MOST_GROUPS = 2000


@dataclass(frozen=True)
class StageContent:
    """One stage of a run, ready to be shown.

    Attributes:
        published: The stage as it was published.
        anchor: Its name in links of the page: user text never stands there.
        sentence: Its main result in words.
        groups: Its groups, at most `MOST_GROUPS` of them, in the order in which the stage gives them.
        left_out: How many groups more there are.
        numbers: The key numbers of every group by their name.
        number_names: The names of the key numbers in order.
        figures: Its figures, with the rows of every group.
    """

    published: PublishedStage
    anchor: str
    sentence: str
    groups: tuple[Group, ...]
    left_out: int
    numbers: dict[Group, dict[str, KeyNumber]]
    number_names: tuple[str, ...]
    figures: tuple[Panels, ...]

    @property
    def shown(self) -> Group | None:
        """The group that is shown before another is chosen; None if the stage shows none."""
        return self.groups[0] if self.groups else None

    @property
    def rows_in_words(self) -> str:
        """The inputs with their numbers of rows."""
        accounts = self.published.accounts
        return " · ".join(f"{name}: {counted(account['rows_in'], 'row')}" for name, account in accounts.items())


def stage_content(published: PublishedStage, anchor: str) -> StageContent:
    """Read what the page shows of a stage.

    Args:
        published: The stage.
        anchor: Its name in links of the page.
    """
    numbers = numbers_by_group(published)
    figures = tuple(panels(figure) for figure in published.figures())
    groups = list(dict.fromkeys([*numbers, *(group for drawn in figures for group in _groups_of(drawn))]))
    groups.sort(key=lambda group: not group.is_total)
    return StageContent(
        published=published,
        anchor=anchor,
        sentence=published.stage.summarize(published.tables).sentence,
        groups=tuple(groups[:MOST_GROUPS]),
        left_out=max(0, len(groups) - MOST_GROUPS),
        numbers=numbers,
        number_names=tuple(dict.fromkeys(name for named in numbers.values() for name in named)),
        figures=figures,
    )


def _groups_of(drawn: Panels) -> tuple[Group, ...]:
    return () if drawn.figure.across else tuple(drawn.spans)


def numbers_by_group(published: PublishedStage) -> dict[Group, dict[str, KeyNumber]]:
    """Return the key numbers of a stage by group and name, groups in the order in which the stage gives them.

    A name that comes again in the same group belongs to a group with the same text.
    """
    numbers: dict[Group, dict[str, KeyNumber]] = {}
    seen: dict[str, list[KeyNumber]] = {}
    for number in published.stage.key_numbers(published.tables):
        seen.setdefault(number.name, []).append(number)
    for name, of_groups in seen.items():
        groups = numbered((number.grouping, number.group) for number in of_groups)
        for group, number in zip(groups, of_groups, strict=True):
            numbers.setdefault(group, {})[name] = number
    return numbers
