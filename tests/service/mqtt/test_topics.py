"""Which filters name a suite of an account, and which topics they match."""

import pytest

from service.mqtt.rules import matches, suite_of


@pytest.mark.parametrize(
    "topic_filter",
    [
        "account/me/ad-hoc-check-results/one/+/+/+",
        "account/me/ad-hoc-check-results/one/#",
        "account/me/ad-hoc-check-results/one/+/run/result",
    ],
)
def test_a_filter_below_a_suite_of_the_account_names_it(topic_filter: str) -> None:
    assert suite_of(topic_filter, "me") == "one"


@pytest.mark.parametrize(
    "topic_filter",
    [
        "",
        "+/me/ad-hoc-check-results/one/+/+/+",
        "account/you/ad-hoc-check-results/one/+/+/+",
        "account/me/ad-hoc-check-results/+/+/+/+",
        "account/me/ad-hoc-check-results//+/+/+",
        "account/me/ad-hoc-check-results/#",
        "account/me/ad-hoc-check-results/one/#/more",
        "account/me/ad-hoc-check-results/one/a+/b",
        "account/me/ad-hoc-check-results/one/a#",
        "account/me/ad-hoc-check-results/on+e/a",
        "$share/group/account/me/ad-hoc-check-results/one/+",
    ],
)
def test_a_filter_of_anything_else_names_none(topic_filter: str) -> None:
    assert suite_of(topic_filter, "me") is None


@pytest.mark.parametrize(
    ("topic_filter", "topic"),
    [("a/b", "a/b"), ("a/+", "a/b"), ("a/#", "a/b/c"), ("a/#", "a"), ("a/+/c", "a//c")],
)
def test_a_filter_matches_as_the_standard_says(topic_filter: str, topic: str) -> None:
    assert matches(topic_filter, topic)


@pytest.mark.parametrize(
    ("topic_filter", "topic"),
    [("a/b", "a/b/c"), ("a/+", "a/b/c"), ("a/+", "a"), ("a/b/#", "a"), ("a/b", "a/c")],
)
def test_a_filter_matches_nothing_else(topic_filter: str, topic: str) -> None:
    assert not matches(topic_filter, topic)
