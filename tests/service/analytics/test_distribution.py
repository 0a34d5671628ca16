"""Percentiles, means and deviations, against NumPy."""

import itertools
import math
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.analytics.distribution import Aggregation, Values, compute
from service.analytics.histogram import ERROR, Histogram, Packed

SHARES = {
    Aggregation.P50: 50,
    Aggregation.MEDIAN: 50,
    Aggregation.P90: 90,
    Aggregation.P95: 95,
    Aggregation.P99: 99,
}
_chance = random.Random(20)
DISTRIBUTIONS = {
    "one number": [12.5],
    "two numbers": [1.0, 1000.0],
    "all alike": [7.25] * 1_000,
    "zeros and one": [0.0] * 99 + [30_000.0],
    "all zero": [0.0] * 10,
    "two heaps far apart": [1.0 + n / 1e6 for n in range(500)] + [9e5 + n for n in range(500)],
    "a heavy tail": [_chance.paretovariate(0.6) for _ in range(5_000)],
    "many orders of magnitude": [10.0 ** _chance.uniform(-6, 11) for _ in range(5_000)],
    "like response times": [_chance.lognormvariate(4, 0.5) for _ in range(43_200)],
    "whole numbers": [float(n % 7) for n in range(1_000)],
    "falling": [float(n) for n in range(1_000, 0, -1)],
    "a small deviation on a large mean": [1e9 + n / 1_000 for n in range(1_000)],
}
numbers = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-6, 1e9, allow_nan=False)), min_size=1, max_size=200
)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_exact_numbers_are_those_of_numpy(name: str) -> None:
    values = DISTRIBUTIONS[name]
    made = Values(values)
    for aggregation, share in SHARES.items():
        assert compute(made, aggregation) == pytest.approx(np.percentile(values, share))
    assert compute(made, Aggregation.AVG) == pytest.approx(np.mean(values))
    assert compute(made, Aggregation.STDDEV) == pytest.approx(np.std(values), rel=1e-6, abs=1e-9)
    assert compute(made, Aggregation.SUM) == pytest.approx(np.sum(values))
    assert compute(made, Aggregation.MIN) == min(values)
    assert compute(made, Aggregation.MAX) == max(values)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_histogram_is_within_one_per_cent_of_numpy(name: str) -> None:
    values = DISTRIBUTIONS[name]
    made = Histogram(Histogram.of(values).pack())
    for share in (*SHARES.values(), 0, 1, 25, 75, 99.9, 100):
        assert made.percentile(share / 100) == pytest.approx(
            np.percentile(values, share), rel=ERROR * (1 + 1e-9), abs=1e-9
        )
    for aggregation in (Aggregation.AVG, Aggregation.SUM, Aggregation.MIN, Aggregation.MAX):
        assert compute(made, aggregation) == pytest.approx(compute(Values(values), aggregation))
    assert compute(made, Aggregation.STDDEV) == pytest.approx(np.std(values), rel=1e-6, abs=1e-9)


@given(numbers, st.floats(0, 100))
def test_any_percentile_of_any_numbers_is_that_of_numpy(values: list[float], share: float) -> None:
    expected = np.percentile(values, share)
    assert Values(values).percentile(share / 100) == pytest.approx(expected, rel=1e-6)
    rough = Histogram.of(values).percentile(share / 100)
    assert rough == pytest.approx(expected, rel=ERROR * (1 + 1e-6), abs=1e-9)


def merged(*parts: Packed) -> Packed:
    made = Histogram()
    for part in parts:
        made.merge(part)
    return made.pack()


@given(numbers, numbers, numbers)
def test_histograms_are_merged_in_any_order_and_grouping(
    first: list[float], second: list[float], third: list[float]
) -> None:
    parts = [Histogram.of(one).pack() for one in (first, second, third)]
    whole = Histogram.of([*first, *second, *third]).pack()
    ways = [merged(*order) for order in itertools.permutations(parts)]
    ways.append(merged(parts[0], merged(parts[1], parts[2])))
    for way in ways:
        assert (way.count, way.least, way.most) == (whole.count, whole.least, whole.most)
        assert (way.buckets, way.counts) == (whole.buckets, whole.counts)
        assert way.total == pytest.approx(whole.total)
        scale = math.sqrt(whole.count) * max(whole.most, 1e-6) * 1e-6
        assert math.sqrt(way.deviations) == pytest.approx(
            math.sqrt(whole.deviations), rel=1e-6, abs=scale
        )


def test_nothing_has_no_numbers() -> None:
    for nothing in (Values(), Histogram(), Histogram(Histogram().pack())):
        assert [compute(nothing, one) for one in Aggregation] == [None] * len(Aggregation)
    assert merged(Histogram().pack(), Histogram.of([3.0]).pack()).count == 1


def test_a_histogram_of_an_hour_is_small() -> None:
    hour = [_chance.lognormvariate(4, 0.3) for _ in range(60)]
    assert len(msgspec.msgpack.encode(Histogram.of(hour).pack())) < 350
