"""What the numbers of compare rest on: units that two systems have in common."""

from __future__ import annotations

from pipeline.stages.sample_sizes import SampleSizes

SAMPLE_SIZES = SampleSizes(
    nouns={"unit": "units"},
    unit="unit",
    units={"unit": "n_units"},
    other_scale="plain",
    has_groups=False,
    is_paired=True,
)
