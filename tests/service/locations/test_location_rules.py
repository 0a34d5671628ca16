from typing import Any

import pytest

from service.locations.rules import (
    KEPT_MS,
    RETURN_MS,
    SAMPLE_MS,
    UNAVAILABLE_AFTER_MS,
    is_deserted,
    window_problem,
)

NOW_MS = 1_795_255_200_000
LONG_AGO_MS = NOW_MS - UNAVAILABLE_AFTER_MS


@pytest.mark.parametrize(
    ("deserted", "changes"),
    [
        (True, {}),
        (False, {"last_seen_ms": LONG_AGO_MS + 1}),
        (True, {"last_seen_ms": None}),
        (False, {"last_seen_ms": None, "created_ms": LONG_AGO_MS + 1}),
        (False, {"watched_since_ms": NOW_MS - RETURN_MS + 1}),
    ],
)
def test_a_location_is_deserted_when_nobody_was_there_for_long(
    deserted: object, changes: dict[str, Any]
) -> None:
    facts: dict[str, Any] = {
        "created_ms": 0,
        "last_seen_ms": LONG_AGO_MS,
        "watched_since_ms": NOW_MS - RETURN_MS,
        "now_ms": NOW_MS,
    }
    assert is_deserted(**{**facts, **changes}) is deserted


def test_a_window_runs_forwards_and_not_too_far_back() -> None:
    def why(from_ms: int, until_ms: int = NOW_MS) -> str | None:
        return window_problem(from_ms=from_ms, until_ms=until_ms, now_ms=NOW_MS)

    assert why(NOW_MS - KEPT_MS) is None
    assert "15 days" in str(why(NOW_MS - KEPT_MS - SAMPLE_MS - 1))
    assert "earlier" in str(why(NOW_MS))
