"""Times and texts as visitors read them."""

from service.web.status_page.visitor_text import (
    format_since,
    format_span,
    only_xml,
)
from tests.fakes.clock import START_MS

DAY_MS = 86_400_000


def test_times_name_their_zone_and_the_day_where_it_is_not_today() -> None:
    assert format_since(START_MS - 7_380_000, now_ms=START_MS) == "07:57 UTC"
    assert format_since(START_MS - DAY_MS, now_ms=START_MS) == "20 Nov, 10:00 UTC"
    assert format_span(START_MS, START_MS + 60_000) == "21 Nov, 10:00 to 10:01 UTC"
    assert format_span(START_MS, START_MS + DAY_MS) == "21 Nov, 10:00 to 22 Nov, 10:00 UTC"


def test_what_xml_cannot_hold_is_left_out() -> None:
    assert only_xml("a\x00b\x0bc\ufffed\ud800e\U0001f600\n") == "abcde\U0001f600\n"
