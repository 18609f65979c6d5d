"""The rule by which mentions are matched, for a methods section."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def rule_in_words(parameters: Mapping[str, object]) -> str:
    """Say which mentions may be matched and how they are, as the end of a sentence."""
    share = f"at least {parameters['minimum_overlap']:.10g} of the characters in "
    of_share = share + ("the gold mention" if parameters["overlap_of"] == "gold" else "either")
    rules = {
        "span": "whose first and last characters are equal",
        "text": "whose normalised texts are equal",
        "overlap": f"that have {of_share if parameters['minimum_overlap'] else 'a character'} in common",
        "text_near": (
            f"whose normalised texts are equal and whose centres lie less than {parameters['max_centre_distance']:g} "
            "characters apart (Gritta et al. 2018)"
        ),
    }
    types = ", and whose types are equal" if parameters["match_type"] else ""
    how = (
        "by a largest one-to-one matching"
        if parameters["assignment"] == "maximum"
        else "one to one, every gold mention in the order of the file taking the first prediction that is free"
    )
    return f"mentions of one document {rules[str(parameters['match'])]}{types}, {how}"
