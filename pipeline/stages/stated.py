"""Values, formulas and sample sizes, as they follow from the counts and ratios that a table states."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from ..base.columns import THRESHOLD, Count, Ratio, divide, nulls, ratio_of, scales, value_of
from ..metrics.curves.decisions import at_choices
from ..metrics.curves.operating_points import Outcomes
from ..metrics.uncertainty.proportions import Confusion
from .sections import Measure
from .stage import Counted, SampleSizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..base.schemas import Column
    from ..metrics.curves.decisions import Ints
    from ..metrics.planning import Scale
    from ..metrics.uncertainty.replicates import Cube, GroupCounts

    Stated: TypeAlias = Sequence[Column | Count | Ratio]


def ratios_of(stated: Stated) -> dict[str, Ratio]:
    """The ratios that are stated, by name."""
    return {each.name: each for each in stated if isinstance(each, Ratio)}


def limited_of(stated: Stated) -> dict[str, Ratio]:
    """Those that have an interval."""
    return {name: ratio for name, ratio in ratios_of(stated).items() if ratio.is_limited}


def counted(stated: Stated, cube: Cube) -> pl.DataFrame:
    """The counts that are stated, of every group at every threshold; a group without any of its own has a row of zeros.

    Returns:
        The keys of the cube, `threshold`, and the counts.
    """
    within, totals = _read(stated, "within"), _read(stated, "total")
    keys, every = list(cube.keys), cube.totals(totals)
    at = cube.at_or_above(within)
    if cube.thresholds is None:
        without = every.select(keys).join(at, on=keys, how="anti", nulls_equal=True)
        zeros = (pl.lit(0).cast(at.schema[name]).alias(name) for name in within)
        at = pl.concat([at, without.with_columns(*nulls([THRESHOLD]), *zeros).select(at.columns)])
    every = every.rename({name: f"all {name}" for name in totals})
    frame = at.join(every, on=keys, how="left", nulls_equal=True)
    decimals = [pl.col(name).cast(pl.Float64) for name, kind in frame.schema.items() if kind.is_decimal()]
    values = _values(stated, pl.col, lambda name: pl.col(f"all {name}"))
    of_counts = (value.alias(name) for name, value in values.items())
    return frame.with_columns(decimals).select(*keys, THRESHOLD, *of_counts)


def with_ratios(frame: pl.DataFrame, stated: Stated, without: Sequence[str] = ()) -> pl.DataFrame:
    """A frame with its ratios, but for those in `without`, and `undefined`: why the first that has a reason is NULL."""
    ratios = [ratio for name, ratio in ratios_of(stated).items() if name not in without]
    divided = frame.with_columns_seq(ratio_of(each, {name: pl.col(name) for name in each.counts}) for each in ratios)
    reasons = (
        pl.when(reduce(add, map(pl.col, ratio.over or ratio.outcomes)) == 0).then(pl.lit(ratio.reason))
        for ratio in ratios_of(stated).values()
        if ratio.reason
    )
    return divided.with_columns(pl.coalesce(*reasons).alias("undefined"))


def outcomes_of(stated: Stated, group: GroupCounts, counts: NDArray[np.bool_] | None = None) -> Confusion:
    """The counts of one group by replicate, of those that count, and threshold; 0 where they are not stated."""
    values = _values(stated, group.at_or_above, lambda name: group.totals(name)[:, None])
    nothing = 0 * reduce(add, values.values())
    of_replicates = {name: nothing + values.get(name, 0) for name in ("tp", "fp", "fn", *values)}
    if counts is not None:
        of_replicates = {name: value[counts] for name, value in of_replicates.items()}
    tp, fp, fn = (of_replicates.pop(name) for name in ("tp", "fp", "fn"))
    return Confusion(tp, fp, fn, 0 * tp, in_time=group.in_time, others=of_replicates)


def at_folds(outcomes: Confusion, chosen: Ints) -> Confusion:
    """The counts of every replicate at the threshold that its fold chose, by number, alone, shape (G, 1)."""
    tp, fp, fn, tn = (at_choices(side, chosen) for side in (outcomes.tp, outcomes.fp, outcomes.fn, outcomes.tn))
    others = {name: at_choices(count, chosen) for name, count in outcomes.others.items()}
    return Confusion(tp, fp, fn, tn, in_time=outcomes.in_time, others=others)


def outcomes_of_row(*neither: str) -> Outcomes[pl.Expr]:
    """The outcomes of a row with the columns `tp`, `fp`, `fn`, and one of what counts neither as true nor as false."""
    tp, fp, fn, *others = (pl.col(name).cast(pl.Float64) for name in ("tp", "fp", "fn", *neither))
    return Outcomes(tp, fp, fn, neither=others[0] if others else None)


def f_beta_of_row(beta: float) -> pl.Expr:
    """F-beta of the same; NULL where it is 0 / 0."""
    counts, square = outcomes_of_row(), beta**2
    return divide((1 + square) * counts.tp, (1 + square) * counts.tp + square * counts.fn + counts.fp)


def _read(stated: Stated, how: str) -> list[str]:
    """The columns of the count table that are read at thresholds, or over all bins."""
    return list(dict.fromkeys(filter(None, (getattr(each, how) for each in stated if isinstance(each, Count)))))


def _values(stated: Stated, within: Callable[[str], Any], total: Callable[[str], Any]) -> dict[str, Any]:
    """The counts by name, from what reads the columns of the count table."""
    values: dict[str, Any] = {}
    for count in (each for each in stated if isinstance(each, Count) and (each.within or each.total or each.formula)):
        terms = [read(name) for read, name in ((within, count.within), (total, count.total)) if name]
        values[count.name] = value_of(count.formula, values, {}) if count.formula else reduce(add, terms)
    return values


def measures_of(stated: Stated, table: str) -> tuple[Measure, ...]:
    """The measures of a table that can be explained: every ratio, with its formula."""
    return tuple(Measure(name, table, (((name, ratio.formula()),),)) for name, ratio in ratios_of(stated).items())


def sample_sizes_of(
    stated: Stated,
    nouns: Mapping[str, str],
    clusters: str,
    *,
    further: Iterable[Count] = (),
    sized_by: str = "",
    scales_of_others: Mapping[str, Scale] | None = None,
    units: Mapping[str, str] | None = None,
) -> SampleSizes:
    """What the ratios of a table rest on: what their denominators count; arguments as for `SampleSizes`.

    Args:
        stated: What the table states.
        nouns: See there.
        clusters: See there.
        further: Counts of other tables.
        sized_by: See there; ratios over several counts rest on it, too.
        scales_of_others: How limits are made of numbers that are no ratios.
        units: See there.
    """
    counts = [each for each in (*stated, *further) if isinstance(each, Count) and each.noun]
    noun_of, limited = {count.name: count.noun for count in counts}, limited_of(stated)
    rests_on = {name: noun_of.get(ratio.over[0]) if len(ratio.over) == 1 else "" for name, ratio in limited.items()}
    return SampleSizes(
        nouns=nouns,
        units=units or {},
        counts=tuple(Counted(count.noun, (count.name,)) for count in counts),
        rests_on={name: noun or sized_by for name, noun in rests_on.items() if noun or sized_by},
        scales={**scales(limited.values()), **(scales_of_others or {})},
        clusters=clusters,
        sized_by=sized_by,
    )
