"""What makes the texts of two mentions equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def normalised_text(column: pl.Expr) -> pl.Expr:
    """Text without differences in case, Unicode composition and white space; NULL stays NULL.

    Case is folded by converting to lower, upper and again lower case, which also unifies ß, ẞ and ss, and ς and σ. Runs
    of white space become one blank, and none is left at the ends. Letters and their accents are composed (NFC). The
    result differs from Unicode case folding in one letter: the dotless ı becomes i.
    """
    lower = column.str.normalize("NFC").str.to_lowercase()
    case_folded = lower.str.to_uppercase().str.to_lowercase().str.normalize("NFC")
    return case_folded.str.replace_all(r"\s+", " ").str.strip_chars()
