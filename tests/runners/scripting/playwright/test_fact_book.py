"""What a run's processes tell is held to its types and sizes: its script may forge it."""

import json
from typing import Any

import pytest

from runners.scripting.playwright.reporter import ReporterEvents


def book(*facts: dict[str, Any] | bytes) -> ReporterEvents:
    told = ReporterEvents()
    for fact in facts:
        told.take(fact if isinstance(fact, bytes) else json.dumps(fact).encode())
    return told


def an_error(**changes: Any) -> dict[str, Any]:
    return {"fact": "error", "message": "Error: no", "where": "script.js:1:1", **changes}


def a_test(outcome: str, title: str = "a") -> dict[str, Any]:
    return {"fact": "testEnded", "title": title, "status": "failed", "outcome": outcome}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no JSON",
        b"[" * 100_000,
        b'{"fact":"unheardOf"}',
        b'{"fact":"page","index":1e9,"url":"/"}',
        b'{"fact":"page","index":0,"url":"/","ttfb":-1}',
        b'{"fact":"page","index":0,"url":"/","cls":1e308}',
        b'{"fact":"page","index":0,"url":7}',
        b'{"fact":"ended","status":"wonderful"}',
        json.dumps({"fact": "error", "message": "x" * 10_000}).encode(),
    ],
)
def test_what_is_no_fact_is_dropped_and_counted(line: bytes) -> None:
    told = book(line)
    assert told.dropped == 1
    assert (told.pages, told.ended, told.errors) == ({}, None, [])


def test_the_newest_fact_of_a_page_counts() -> None:
    told = book(*({"fact": "page", "index": 0, "url": "/", "lcp": lcp} for lcp in (1, 2.5)))
    assert told.pages[0].lcp == 2.5


def test_no_more_is_kept_than_a_result_can_hold() -> None:
    told = book(*[an_error()] * 150)
    assert len(told.errors) == 100
    assert told.dropped == 50


@pytest.mark.parametrize(("outcome", "errors"), [("unexpected", 1), ("expected", 0), ("flaky", 0)])
def test_errors_of_a_test_that_is_well_in_the_end_do_not_count(outcome: str, errors: int) -> None:
    told = book(an_error(test="a"), a_test("unexpected"), a_test(outcome))
    assert len(told.errors) == errors
