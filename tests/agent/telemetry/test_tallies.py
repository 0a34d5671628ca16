"""Tallies read like prometheus-client's own metrics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from agent.telemetry.metrics import Counter, Gauge, MetricsCollector, MetricSource
from agent.telemetry.metrics import Histogram as Spreads

BOUNDS = (0.1, 1.0, 10.0)


def samples(tally: MetricSource) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    registry = CollectorRegistry()
    registry.register(MetricsCollector([tally]))
    return read(generate_latest(registry))


def read(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.floats(min_value=0, max_value=100) | st.sampled_from(BOUNDS)))
def test_a_histogram_counts_as_the_library_does(values: list[float]) -> None:
    ours = Spreads("took", "How long.", BOUNDS)
    registry = CollectorRegistry()
    theirs = Histogram("took", "How long.", buckets=BOUNDS, registry=registry)
    for value in values:
        ours.observe(value)
        theirs.observe(value)
    assert samples(ours) == pytest.approx(read(generate_latest(registry)))


def test_a_histogram_keeps_its_series_apart() -> None:
    took = Spreads("took", "How long.", BOUNDS, labels=("type",), known=[("a",), ("b",)])
    took.observe(0.5, ("a",))
    seen = samples(took)
    assert seen["took_count", (("type", "a"),)] == 1
    assert seen["took_count", (("type", "b"),)] == 0


def test_a_counter_has_a_series_for_each_set_of_labels() -> None:
    asked = Counter("asked", "How often.", labels=("call", "status"), known=[("claim", "200")])
    asked.counts["hello", "401"] += 2
    assert samples(asked) == {
        ("asked_total", (("call", "claim"), ("status", "200"))): 0,
        ("asked_total", (("call", "hello"), ("status", "401"))): 2,
    }


def test_without_labels_there_is_one_series_from_the_start() -> None:
    assert samples(Counter("lost", "How many.")) == {("lost_total", ()): 0}
    assert samples(Gauge("left", "How many.")) == {("left", ()): 0}
