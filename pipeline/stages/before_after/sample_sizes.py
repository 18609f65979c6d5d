"""What the numbers of before_after rest on: events, with their pairs.

Limits of precision lie on the scale of the logarithm of 1 - P, those of recall and F1 are Fieller's, which are nearly
symmetric about the number where they are narrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sample_sizes import Counted, Labelled, SampleSizes

if TYPE_CHECKING:
    from ...metrics.planning.pilot import Scale

_AFTER, _BEFORE = "matches after the event", "matches before the event"
_VERSIONS = ("", "_uncorrected")
_RATIOS: dict[str, Scale] = {"precision": "lack", "recall": "plain", "f1": "plain"}
SAMPLE_SIZES = SampleSizes(
    nouns={"event_id": "events", "day": "days", "article_id": "articles"},
    inputs={"event_id": "events"},
    counts=(
        Counted("compared pairs", ("n_before", "n_after")),
        Counted(_AFTER, ("m_after",)),
        Counted(_BEFORE, ("m_before",)),
    ),
    rests_on={
        "fpr": _BEFORE,
        **{f"precision{version}": _BEFORE for version in _VERSIONS},
        **{f"{name}{version}": _AFTER for name in ("recall", "f1") for version in _VERSIONS},
    },
    scales={"fpr": "log", **{f"{name}{version}": scale for name, scale in _RATIOS.items() for version in _VERSIONS}},
    bounds={
        **{f"precision{version}": (0.0, 1.0) for version in _VERSIONS},
        **{f"{name}{version}": (0.0, 1.0) for name in ("recall", "f1") for version in _VERSIONS},
    },
    clusters="before_after_operating_points",
    labelled=Labelled(
        "precision_audited", "before_after_audit", "n_audited", "n_right", population="m_after", estimate="precision"
    ),
)
