"""Moments of average precision against enumeration in rationals and against sums in 80 digits."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.metrics.ranking.random_selection import (
    average_precision_moments,
    average_precision_moments_of,
    average_precision_skewness,
    zhang_su_2012_moments,
)

if TYPE_CHECKING:
    from pathlib import Path

BERNOULLI = [Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30), Fraction(5, 66), Fraction(-691, 2730)]
SIZES = [4, 5, 10, 100, 255, 256, 257, 300, 10**4, 10**6, 10**7 + 1, 10**9, 10**12 - 1, 10**12]


def every_average_precision(n: int, m: int) -> list[Fraction]:
    sets = itertools.combinations(range(1, n + 1), m)
    return [sum((Fraction(k, rank) for k, rank in enumerate(ranks, 1)), Fraction(0)) / m for ranks in sets]


def sums(n: int) -> tuple[Decimal, Decimal]:
    """Harmonic sums of first and second order: the first 1,000 terms, then Euler and Maclaurin."""
    few = min(n, 1000)
    first = sum((1 / Decimal(k) for k in range(1, few)), Decimal(0))
    second = sum((1 / Decimal(k) ** 2 for k in range(1, few)), Decimal(0))
    a, b = Decimal(few), Decimal(n)
    if n == few:
        return first + 1 / a, second + 1 / a**2
    first += (b / a).ln() + (1 / a + 1 / b) / 2
    second += 1 / a - 1 / b + (1 / a**2 + 1 / b**2) / 2
    for i, number in enumerate(BERNOULLI, 1):
        term = Decimal(number.numerator) / Decimal(number.denominator)
        first += term / (2 * i) * (a ** (-2 * i) - b ** (-2 * i))
        second += term * (a ** (-2 * i - 1) - b ** (-2 * i - 1))
    return first, second


def in_many_digits(n: int, m: int) -> tuple[float, float]:
    """From the second moments of pairs of ranks, before anything is collected."""
    with localcontext(prec=80):
        h, g = sums(n)
        p = [Decimal(1)]
        for j in range(4):
            p.append(p[-1] * max(m - j, 0) / (n - j))
        one, two, three, four = p[1:]
        square = (one - 3 * two + 2 * three) * g + 3 * (two - three) * h + three * n
        square += (2 * two - 5 * three + 3 * four) * (h * h - g) + 6 * (three - four) * (n - h)
        square += 2 * (three - four) * (n * h - n) + four * n * (n - 1)
        mean = one * h + two * (n - h)
        return float(mean / m), float((square - mean * mean) / m**2)


def shapes(n: int) -> list[int]:
    rng = np.random.default_rng(n)
    few = [int(math.exp(x)) for x in rng.uniform(0, math.log(n), 25)]
    numbers = {1, 2, 3, n // 2, n // 3, n // 3 + 1, n // 10, *few, *(n - each for each in few), *rng.integers(1, n, 25)}
    return sorted(int(m) for m in numbers if 1 <= m < n)


@pytest.mark.parametrize("n", range(1, 10))
def test_small_sizes_are_those_of_every_order(n: int) -> None:
    for m in range(1, n + 1):
        values = every_average_precision(n, m)
        mean = sum(values) / len(values)
        variance = sum((each - mean) ** 2 for each in values) / len(values)
        for actual in (average_precision_moments(n, m), average_precision_moments_of(n, m)):
            assert float(actual[0]) == pytest.approx(float(mean), rel=1e-14)
            assert float(actual[1]) == pytest.approx(float(variance), rel=1e-13, abs=0)
        if m < n:
            third = sum((each - mean) ** 3 for each in values) / len(values)
            expected = float(third) / float(variance) ** 1.5
            assert average_precision_skewness(n, m) == pytest.approx(expected, abs=1e-11)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("n", SIZES)
def test_large_sizes_are_those_of_many_digits(n: int) -> None:
    relevant = shapes(n)
    means, variances = average_precision_moments_of(n, relevant)
    for m, mean, variance in zip(relevant, means, variances, strict=True):
        expected = in_many_digits(n, m)
        assert average_precision_moments(n, m) == pytest.approx(expected, rel=1e-14, abs=0)
        assert (mean, variance) == pytest.approx(expected, rel=1e-14, abs=0)


def test_numbers_that_were_published() -> None:
    """The exact values beside the sizes of Zhang & Su (2012), table III."""
    assert average_precision_moments(1000, 100) == pytest.approx((0.1058427665410363, 1.3015371369317613e-4), rel=1e-14)
    assert average_precision_moments(2000, 500) == pytest.approx((0.2526932346561819, 9.892955084997215e-5), rel=1e-14)


def test_moments_of_the_real_data_set(real_data: Path) -> None:
    folder = real_data / "ranking_trec"
    expected = json.loads((folder / "expected_random_selection.json").read_text(encoding="utf-8"))
    for row in expected["rows"]:
        mean, variance = average_precision_moments(row["n"], row["m"])
        assert mean == pytest.approx(row["exact_mean"], rel=1e-12)
        assert variance == pytest.approx(row["exact_variance"], rel=1e-12)
        error = (variance / row["replicates"]) ** 0.5
        assert mean == pytest.approx(row["mc_mean"], abs=4 * error)


def test_what_is_undefined_and_what_does_not_vary() -> None:
    assert average_precision_moments(1, 1) == (1, 0)
    assert average_precision_moments(7, 7) == (1, 0)
    assert np.isnan(average_precision_moments(7, 0)).all()
    assert math.isnan(average_precision_skewness(7, 0))
    assert math.isnan(average_precision_skewness(7, 7))
    mean, variance = average_precision_moments_of([1, 7, 7, 3], [1, 0, 7, 1])
    assert mean == pytest.approx([1, np.nan, 1, 11 / 18], nan_ok=True)
    assert variance == pytest.approx([0, np.nan, 0, 13 / 162], nan_ok=True)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (5, 6), (5, -1), (10**12 + 1, 1)])
def test_impossible_sizes_are_refused(n: int, m: int) -> None:
    with pytest.raises(ValueError, match="n must lie in 1"):
        average_precision_moments(n, m)
    with pytest.raises(ValueError, match="n must lie in 1"):
        average_precision_moments_of([10, n], [1, m])
    with pytest.raises(ValueError, match="n must lie in 1"):
        average_precision_skewness(n, m)


def skewness_in_many_digits(n: int, m: int) -> float:
    """From E[X^r | k hits in t ranks] for all k, by the two cases of rank t."""
    with localcontext(prec=60):
        moments = {0: [Decimal(1), Decimal(0), Decimal(0), Decimal(0)]}
        for t in range(1, n + 1):
            grown = {}
            for k in range(max(0, m - (n - t)), min(t, m) + 1):
                share = Decimal(k) / t
                without, before = moments.get(k), moments.get(k - 1)
                mixed = [(1 - share) * each for each in without] if without else [Decimal(0)] * 4
                if before:
                    hit = [sum(math.comb(r, i) * share ** (r - i) * before[i] for i in range(r + 1)) for r in range(4)]
                    mixed = [each + share * one for each, one in zip(mixed, hit, strict=True)]
                grown[k] = mixed
            moments = grown
        _, first, second, third = moments[m]
        variance = second - first**2
        third_central = third - 3 * first * second + 2 * first**3
        return float(third_central / variance) / math.sqrt(float(variance))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("n", "m"), [(500, 100), (500, 490), (500, 3), (40, 20)])
def test_skewness_is_that_of_many_digits(n: int, m: int) -> None:
    assert average_precision_skewness(n, m) == pytest.approx(skewness_in_many_digits(n, m), abs=1e-9)


def test_the_wrong_moments_of_the_paper_are_its_printed_ones_and_say_so() -> None:
    with pytest.warns(UserWarning, match="are wrong"):
        mean, variance = zhang_su_2012_moments(1000, 100)
    assert (round(mean, 4), round(variance, 7)) == (0.1037, 0.0001392)
    with pytest.warns(UserWarning, match="are wrong"):
        mean, variance = zhang_su_2012_moments(2000, 500)
    assert (round(mean, 4), round(variance, 6)) == (0.2522, 0.000142)
    with pytest.raises(ValueError, match="at least 2"):
        zhang_su_2012_moments(10, 1)
