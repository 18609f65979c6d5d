"""One figure of one group as an object that notebooks show, and that can be saved."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ...errors import UsageError
from ...records import dataclass
from ...runs.written import picture_file
from ...storage.durable import make_folder
from ..words import described
from .pictures import PictureFormat, picture, picture_specification

if TYPE_CHECKING:
    import os

    from .panels import Group, Panels


@dataclass(frozen=True, repr=False)
class Chart:
    """A figure of one group.

    Attributes:
        panels: The figure, by group.
        group: The group.
        source: Where the numbers come from, in one line.
    """

    panels: Panels
    group: Group
    source: str

    def __repr__(self) -> str:
        """Say what it shows."""
        return f"{self.panels.figure.name}: {self.panels.figure.title}, {self.group.label}"

    def _repr_svg_(self) -> str:
        """Return the drawing, which notebooks show."""
        drawn = picture(self.panels, self.group, form="svg", source=self.source).decode()
        label = html.escape(described(self.panels, self.group), quote=True)
        return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification with its data, for example for `altair.Chart.from_dict`."""
        return picture_specification(self.panels, self.group, source=self.source)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to a file; its ending, `.svg`, `.png` or `.pdf`, is the format.

        Raises:
            UsageError: the ending is another one.
            CannotCreateError: the folder cannot be written.
        """
        target = Path(path).expanduser()
        form = next((form for form in get_args(PictureFormat) if target.suffix.lower() == f".{form}"), None)
        if form is None:
            message = f"{target} does not end in {', '.join(f'.{form}' for form in get_args(PictureFormat))}"
            raise UsageError(message, remedy="Choose the format by the ending of the file.")
        make_folder(target.absolute().parent, "save")
        picture_file(target.absolute(), "save").replace(picture(self.panels, self.group, form=form, source=self.source))
        return target
