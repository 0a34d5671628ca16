"""Logos and favicons."""

import pytest

from service.web.status_page.pictures import (
    Picture,
    PictureAddress,
    find_origin,
    read_picture,
)


def test_a_picture_that_was_sent_is_read() -> None:
    assert read_picture("data:image/png;base64,iVBORw==") == Picture("image/png", "png", b"\x89PNG")
    svg = Picture("image/svg+xml", "svg", b"<svg/>")
    assert read_picture("data:image/svg+xml;charset=utf-8,%3Csvg/%3E") == svg


def test_an_address_is_allowed_by_its_origin_alone() -> None:
    picture = read_picture("https://CDN.example:8443/a b.png?x='")
    assert picture == PictureAddress(
        "https://CDN.example:8443/a b.png?x='", "https://cdn.example:8443"
    )
    assert find_origin("https://bücher.example/") == "https://xn--bcher-kva.example"
    assert find_origin("http://[2001:db8::1]/") == "http://[2001:db8::1]"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "javascript:alert(1)",
        "data:text/html,<script>1</script>",
        "data:image/png;base64,###",
        "data:image/html,x",
        "https://a.example;script-src *",
        "https://a.example 'unsafe-inline'/",
        "https://a.example:99999/",
        "//a.example/x.png",
        "https:///x.png",
    ],
)
def test_what_browsers_could_not_show_or_must_not_is_no_picture(text: str | None) -> None:
    assert read_picture(text) is None
