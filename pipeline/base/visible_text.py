"""Text for people: of users, which cannot control what shows it, and numbers that do not claim more than they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_DECIMALS, _MOST_ZEROS = 6, 6

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


def percent(share: float, decimals: int = 1) -> str:
    """A share in percent, with more decimals where fewer would make it none or all, which only exact ones are."""
    for number in range(decimals, _MOST_DECIMALS + 1):
        text = f"{share:.{number}%}"
        if abs(float(text[:-1])) not in {0.0, 100.0} or share in {0.0, 1.0, -1.0}:
            return text
    return f"{share:.{decimals}%}" if share < 0 or share > 1 else "< 0.0001%" if share < 1 / 2 else "> 99.9999%"


def percent_limits(lower: float, upper: float, decimals: int = 0) -> str:
    """Both limits of a share in percent, `88–93`; they are rounded to none or all only away from the share."""
    below, above = f"{lower * 100:.{decimals}f}", f"{upper * 100:.{decimals}f}"
    below = percent(lower, decimals)[:-1] if float(below) >= 100 else below  # noqa: PLR2004 - all
    above = percent(upper, decimals)[:-1] if float(above) <= 0 else above
    return f"{below}\u2013{above}"


def of_every(share: float) -> str:
    """A share in words, `91 of every 100`, of more where it would round to none or all, which only exact ones are."""
    if not 0 < share < 1:
        return f"{round(share * 100):,} of every 100"
    for zeros in range(2, _MOST_ZEROS + 1):
        base = 10**zeros
        if 0 < (number := round(share * base)) < base:
            return f"{number:,} of every {base:,}"
    return f"{'fewer than 1' if share < 1 / 2 else f'more than {base - 1:,}'} of every {base:,}"


def listed(texts: Iterable[str], word: str = "and") -> str:
    """Join texts as in a sentence: `a, b and c`."""
    *others, last = texts
    return f"{', '.join(others)} {word} {last}" if others else last
