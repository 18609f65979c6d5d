"""Which tests compare knows, what each says, and which of them fit what is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...tables.ratios import RATIOS

if TYPE_CHECKING:
    from collections.abc import Sequence

Test = Literal[
    "paired_t",
    "bootstrap_t",
    "wilcoxon",
    "sign",
    "randomization",
    "jackknife_t",
    "welch_t",
    "permutation",
    "bayes",
]
Compared = Literal["mean", "contribution", "counts", "events"]  # values, contributions, ratios of counts, around events

CELLS = ("tp", "fp", "fn")
EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")
POOLED = tuple(f"pooled_{name}" for name in RATIOS)

# unless the config says otherwise
PAIRED_TESTS: tuple[Test, ...] = ("paired_t", "bootstrap_t", "randomization", "bayes")
UNPAIRED_TESTS: tuple[Test, ...] = ("welch_t", "jackknife_t", "bayes")
NEEDS_PAIRS: tuple[Test, ...] = ("paired_t", "wilcoxon", "sign", "randomization")
NEEDS_GROUPS: tuple[Test, ...] = ("welch_t", "permutation")
WITH_INTERVAL: tuple[Test, ...] = ("paired_t", "bootstrap_t", "jackknife_t", "welch_t")

_PAIRED: dict[Compared, tuple[Test, ...]] = {
    "mean": ("paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization"),
    "contribution": ("paired_t", "bootstrap_t"),
    "counts": ("jackknife_t", "randomization", "bayes"),
    "events": ("jackknife_t", "randomization"),
}
_UNPAIRED: dict[Compared, tuple[Test, ...]] = {
    "mean": ("welch_t", "bootstrap_t", "permutation"),
    "contribution": ("welch_t", "bootstrap_t"),
    "counts": ("jackknife_t", "permutation", "bayes"),
    "events": ("jackknife_t",),
}
_HYPOTHESES: dict[Test, str] = {
    "paired_t": "equal means",
    "bootstrap_t": "equal means",
    "welch_t": "equal means",
    "wilcoxon": "differences symmetric about 0",
    "sign": "median difference 0",
    "randomization": "systems exchangeable within units",
    "permutation": "units exchangeable between systems",
    "jackknife_t": "equal ratios of all counts",
}


def fitting(compared: Compared, *, paired: bool) -> tuple[Test, ...]:
    """The tests that fit, the one that gives the interval first.

    Args:
        compared: What is compared.
        paired: Whether the systems have the same units.
    """
    return (_PAIRED if paired else _UNPAIRED)[compared]


def chosen(tests: Sequence[Test], compared: Compared, *, paired: bool) -> tuple[Test, ...]:
    """Those of some tests that fit and give p-values, in their order."""
    return tuple(test for test in tests if test in fitting(compared, paired=paired) and test != "bayes")


_HYPOTHESES_OF_CLUSTERS: dict[Test, str] = {
    "wilcoxon": "differences of the means of clusters symmetric about 0",
    "sign": "median difference of the means of clusters 0",
    "randomization": "systems exchangeable within clusters",
    "permutation": "clusters exchangeable between systems",
}


def hypothesis(test: Test, compared: Compared, *, clustered: bool = False) -> str:
    """The null hypothesis of a test in words.

    Args:
        test: The test.
        compared: What is compared.
        clustered: Whether units lie in clusters.
    """
    if compared == "contribution":
        return "equal means of contributions"
    if clustered and test in _HYPOTHESES_OF_CLUSTERS and compared != "events":
        return _HYPOTHESES_OF_CLUSTERS[test]
    if compared == "events" and test == "randomization":
        return "contributions of events to the difference symmetric about 0"
    return _HYPOTHESES[test]
