"""What people wrote, as it stands in a page."""

import pytest

from service.web.rendering import link_addresses


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
