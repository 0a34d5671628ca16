"""Which part of the past an address names."""

import pytest

from service.http.errors import InvalidError
from service.web.check.ranges import Address, read_range

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
OLD_MS = NOW_MS - 100 * HOUR_MS


@pytest.mark.parametrize(
    ("query", "hours"),
    [({}, 24), ({"range": "1h"}, 1), ({"range": "7d"}, 168), ({"range": "30d"}, 720)],
)
def test_a_named_range_ends_now(query: dict[str, str], hours: int) -> None:
    shown = read_range(query, now_ms=NOW_MS, created_ms=OLD_MS)

    assert shown.span == (NOW_MS - hours * HOUR_MS, NOW_MS)


def test_a_name_that_nobody_knows_is_a_day() -> None:
    assert read_range({"range": "x"}, now_ms=NOW_MS, created_ms=OLD_MS).name == "24h"


@pytest.mark.parametrize(
    ("hours", "name"), [(0, "1h"), (1, "1h"), (2, "6h"), (7, "24h"), (25, "24h"), (2_000, "24h")]
)
def test_the_shortest_range_that_covers_its_life_is_shown_where_nobody_chose(
    hours: int, name: str
) -> None:
    created_ms = NOW_MS - hours * HOUR_MS
    assert read_range({}, now_ms=NOW_MS, created_ms=created_ms).name == name
    assert read_range({"range": "24h"}, now_ms=NOW_MS, created_ms=created_ms).name == "24h"


def test_limits_come_before_a_name() -> None:
    query = {"range": "7d", "from": "1789900000", "to": "1789903600"}

    shown = read_range(query, now_ms=NOW_MS, created_ms=OLD_MS)

    assert shown.span == (1_789_900_000_000, 1_789_903_600_000)


def test_what_a_form_sends_is_read_as_utc() -> None:
    query = {"from": "2026-09-20T10:00", "to": "2026-09-20T12:00"}

    shown = read_range(query, now_ms=NOW_MS, created_ms=OLD_MS)

    assert shown.length_ms == 2 * HOUR_MS
    assert shown.span[0] == 1_789_898_400_000


def test_limits_that_are_swapped_or_alike_still_name_a_range() -> None:
    swapped = read_range(
        {"from": "1789903600", "to": "1789900000"}, now_ms=NOW_MS, created_ms=OLD_MS
    )
    alike = read_range({"from": "1789900000", "to": "1789900000"}, now_ms=NOW_MS, created_ms=OLD_MS)

    assert swapped.span == (1_789_900_000_000, 1_789_903_600_000)
    assert alike.length_ms == 300_000


def test_a_limit_that_is_no_time_is_refused_with_its_name() -> None:
    with pytest.raises(InvalidError, match="yesterday"):
        read_range({"from": "yesterday"}, now_ms=NOW_MS, created_ms=OLD_MS)


def test_a_link_changes_one_part_and_keeps_the_rest() -> None:
    address = Address("/checks/1", {"range": "7d", "tab": "runs", "status": "failed"})

    assert address.to(status="") == "/checks/1?range=7d&tab=runs"
    assert address.over("24h") == "/checks/1?tab=runs&status=failed&range=24h"
    assert address.below("series.json") == "/checks/1/series.json?range=7d"


def test_a_limit_in_the_far_future_is_one_of_tomorrow() -> None:
    far = "9999-12-31T23:59:59Z"

    span = read_range({"from": far, "to": far}, now_ms=NOW_MS, created_ms=OLD_MS).span

    assert span[0] < span[1] <= NOW_MS + 2 * 86_400_000
