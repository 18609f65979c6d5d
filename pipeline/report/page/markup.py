"""HTML that is safe by construction: text is escaped unless a function of this module made it."""

from __future__ import annotations

import html
import json
from typing import Any

from ...visible_text import cleaned

_VOID = frozenset({"br", "input", "meta", "link"})


class Markup(str):
    """HTML that was made here; any other text is escaped before it stands in a page."""

    __slots__ = ()


Content = str | None


def escaped(text: str) -> Markup:
    """Escape text, and show characters that could steer what shows them."""
    return text if isinstance(text, Markup) else Markup(html.escape(cleaned(text, layout=" "), quote=True))


def joined(*contents: Content) -> Markup:
    """Put pieces one after the other; None is nothing."""
    return Markup("".join(escaped(content) for content in contents if content is not None))


def element(tag: str, *contents: Content, **attributes: str | bool | None) -> Markup:
    """Make an element.

    Args:
        tag: Its name.
        contents: Text, which is escaped, and elements.
        attributes: Its attributes: a trailing `_` is dropped, other `_` are `-`; True is an attribute without a value,
            None and False none.
    """
    written = [
        _attribute(name, value) for name, value in attributes.items() if value is not None and value is not False
    ]
    opening = f"<{tag}{''.join(written)}>"
    return Markup(opening if tag in _VOID else f"{opening}{joined(*contents)}</{tag}>")


def _attribute(name: str, value: str | bool) -> str:  # noqa: FBT001 - an attribute without a value
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escaped(str(value))}"'


def drawing(svg: str) -> Markup:
    """Take over a drawing that `pictures.inert` has gone through."""
    return Markup(svg)


def inert_json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """JSON that can stand inside a script element: it holds no character that could end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
