"""What the numbers of compare rest on: units that two systems have in common."""

from __future__ import annotations

from ..sample_sizes import Counted, SampleSizes

SAMPLE_SIZES = SampleSizes(
    nouns={"unit": "units"},
    unit="unit",
    units={"unit": "n_units"},
    counts=(Counted("units of the first system", ("n_units_a",)), Counted("units of the second", ("n_units_b",))),
    scales={"difference": "plain", "ratio": "log"},
    has_groups=False,
    is_paired=True,
)
