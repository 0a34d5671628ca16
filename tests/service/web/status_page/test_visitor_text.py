"""What a person wrote, as visitors read it."""

import pytest

from service.web.status_page.visitor_text import (
    format_since,
    format_span,
    link_addresses,
    only_xml,
)
from tests.fakes.clock import START_MS

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "See https://a.example/b.",
            'See <a href="https://a.example/b" {}>https://a.example/b</a>.',
        ),
        (
            "(https://a.example/x_(y))",
            '(<a href="https://a.example/x_(y)" {}>https://a.example/x_(y)</a>)',
        ),
        (
            "https://a.example/?a=1&b=2",
            '<a href="https://a.example/?a=1&amp;b=2" {}>https://a.example/?a=1&amp;b=2</a>',
        ),
        ("http://a.example", "http://a.example"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://", "https://"),
        ("https://[::1", "https://[::1"),
        ("<script>1</script>", "&lt;script&gt;1&lt;/script&gt;"),
        (
            'https://a.example/"onclick=',
            '<a href="https://a.example/" {}>https://a.example/</a>&#34;onclick=',
        ),
    ],
)
def test_https_addresses_are_links_and_nothing_else_is(text: str, html: str) -> None:
    assert str(link_addresses(text)) == html.format('rel="nofollow noopener"')


def test_times_name_their_zone_and_the_day_where_it_is_not_today() -> None:
    assert format_since(START_MS - 7_380_000, now_ms=START_MS) == "07:57 UTC"
    assert format_since(START_MS - DAY_MS, now_ms=START_MS) == "20 Nov, 10:00 UTC"
    assert format_span(START_MS, START_MS + 60_000) == "21 Nov, 10:00 to 10:01 UTC"
    assert format_span(START_MS, START_MS + DAY_MS) == "21 Nov, 10:00 to 22 Nov, 10:00 UTC"


def test_what_xml_cannot_hold_is_left_out() -> None:
    assert only_xml("a\x00b\x0bc\ufffed\ud800e\U0001f600\n") == "abcde\U0001f600\n"
