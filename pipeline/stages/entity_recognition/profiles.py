"""What nervaluate does otherwise."""

from __future__ import annotations

from ...tables.columns import RATIOS
from ..profiles import Convention, Profile

_ALL = -1.7976931348623157e308  # below every score
_UNITS = ("entity_recognition_documents", "doc_id", ("tp", "fp", "fn"))


def _nervaluate(name: str, schema: str, words: str, *, typed: bool) -> Profile:
    return Profile(
        name=name,
        tool=f"nervaluate 1.2.1, schema {schema!r}",
        measures={ratio: ratio for ratio in RATIOS},
        conventions=(
            Convention(
                "scores",
                "knows none: every prediction counts",
                {"thresholds": (_ALL,), "boundary": ">="},
                needs_scores=True,
            ),
            Convention("mentions that match", words, {"match": "span", "match_type": typed}),
            Convention("nothing predicted, or nothing to find", "0", ours="NULL", undefined=0.0),
        ),
        exactly="as long as no mention repeats or overlaps another of its side; its overlaps are matched greedily",
        units=_UNITS,
        all_scores=True,
    )


PROFILES = (
    _nervaluate("nervaluate", "strict", "those with the same span and type", typed=True),
    _nervaluate("nervaluate-exact", "exact", "those with the same span, whatever the type", typed=False),
)
