"""Text of users that cannot control what shows it: a terminal, a page or a picture."""

from __future__ import annotations

import re

_STEERING = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, among them those that begin an escape sequence
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # they turn the direction of the text around them
    "\u200b\u2060-\u2065"  # nothing is seen of them, so that two texts would look alike
    "\u2028\u2029\ufeff\ufff9-\ufffb\ud800-\udfff"  # line separators, marks, halves of characters
    "\U000e0000-\U000e007f"  # letters that are not shown
    "]"
)


def cleaned(text: str, *, layout: str = "\n\t") -> str:
    r"""The text with characters that could steer a terminal written as in JSON, for example `\u001b`.

    Args:
        text: Anything.
        layout: Control characters that stay.
    """
    return _STEERING.sub(lambda match: match[0] if match[0] in layout else _escaped(match[0]), text)


def with_edges(value: object) -> str:
    """A value as text, in quotes if it is empty or has white space at an edge, which nobody would see."""
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and (not text or text != text.strip()) else text


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - the first plane


def rows_in_words(number: object) -> str:
    """A number of rows in words."""
    return "1 row" if number == 1 else f"{number:,} rows"
