"""Tables of before_after that are made only if the config asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.plan.optional_tables import OptionalTable
from pipeline.stages.before_after import adjusted, audit, placebo, trend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.stages.before_after.resolved import Resolved


def requested_tables(run: Resolved) -> Iterator[OptionalTable]:
    """Every such table, with whether it is asked for."""
    params = run.params
    limits = 'uncertainty = "jackknife" or "bootstrap"'
    yield OptionalTable(placebo.TABLE, "uncertainty", params.uncertainty != "none", wish=limits)
    yield OptionalTable(adjusted.TABLE, "strata", bool(run.strata), wish='strata = ["hour"], for example,')
    for name in ("before_after_lags", trend.TABLE):
        has_lags = bool(params.lag_thresholds)
        yield OptionalTable(name, "lag_thresholds", has_lags, wish="lag_thresholds = [0.8], for example,")
    drawn = "audit = { threshold = 0.5 }, for example,"
    yield OptionalTable(audit.SAMPLE, "audit", params.audit is not None, wish=drawn)
    labels = "the input audited, with the labels of the sample,"
    yield OptionalTable(audit.TABLE, "audited", run.audited is not None, wish=labels)
    yield OptionalTable("before_after_gold", "gold", run.gold is not None, wish="the input gold")
