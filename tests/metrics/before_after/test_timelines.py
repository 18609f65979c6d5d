from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.before_after.timelines import Span, counts_around, counts_between

moments = st.lists(st.integers(-12, 12), max_size=15)
spans = st.builds(
    lambda before, gap, near, after, closed: Span(
        before_start=-before,
        before_end=-min(gap, before - 1),
        near_start=-min(near + gap, before),
        after_start=0,
        after_end=after,
        closed=closed,
    ),
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(0, 6),
    st.booleans(),
)


@given(moments, moments, spans)
def test_counts_around_events_equal_a_double_loop(events: list[int], articles: list[int], span: Span) -> None:
    actual = counts_around(np.array(events, dtype=np.int64), np.array(sorted(articles), dtype=np.int64), span)
    lags = [[article - event for article in articles] for event in events]
    end = span.after_end + 1 if span.closed else span.after_end
    for name, start, stop in (
        ("n_before", span.before_start, span.before_end),
        ("n_near", span.near_start, span.before_end),
        ("n_after", span.after_start, max(end, span.after_start)),
    ):
        assert actual[name].tolist() == [sum(start <= lag < stop for lag in own) for own in lags], name


@given(moments, moments, st.lists(st.integers(-15, 15), max_size=6, unique=True))
def test_counts_between_edges_equal_a_double_loop(events: list[int], articles: list[int], edges: list[int]) -> None:
    edges = sorted(edges)
    actual = counts_between(np.array(events, dtype=np.int64), np.array(sorted(articles), dtype=np.int64), edges)
    expected = [
        [sum(start <= article - event < stop for article in articles) for event in events]
        for start, stop in pairwise(edges)
    ]
    assert [each.tolist() for each in actual] == expected
