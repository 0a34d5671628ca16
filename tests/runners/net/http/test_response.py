"""Heads as servers write them, careless ones included."""

import pytest

from runners.net.http.response import (
    BadStatusLineError,
    BodyRead,
    Head,
    parse_content_type,
    read_head,
    store_body,
)


def head(raw: bytes) -> Head:
    found = read_head(raw.splitlines(keepends=True))
    assert found is not None
    return found


def test_a_head_is_read() -> None:
    found = head(b"HTTP/1.1 201 Made It\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
    assert (found.status_code, found.status_text, found.http_version) == (201, "Made It", "1.1")
    assert found.headers == {"x-a": "1, 2"}
    assert found.is_complete


def test_a_bare_line_feed_ends_a_line() -> None:
    found = head(b"HTTP/1.1 200 OK\nContent-Type: text/plain\nX-A: b\n\n")
    assert found.headers == {"content-type": "text/plain", "x-a": "b"}
    assert found.is_complete


def test_a_status_text_may_hold_a_colon() -> None:
    found = head(b"HTTP/1.1 503 Down: back at noon\r\nX-A: b\r\n\r\n")
    assert (found.status_code, found.status_text) == (503, "Down: back at noon")


def test_the_last_head_counts() -> None:
    found = head(
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\nSet-Cookie: a=b\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n"
    )
    assert found.headers == {"x-a": "b"}
    assert found.set_cookies == ()


def test_trailers_are_no_headers() -> None:
    found = head(b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nContent-Type: application/json\r\n\r\n")
    assert found.headers == {"x-a": "b"}
    assert found.is_complete


@pytest.mark.parametrize("name", ["Location", "Content-Type"])
def test_of_a_header_that_is_no_list_the_first_counts(name: str) -> None:
    found = head(f"HTTP/1.1 200 OK\r\n{name}: /a\r\n{name}: /b\r\n\r\n".encode())
    assert found.headers == {name.lower(): "/a"}


def test_each_cookie_stays_whole() -> None:
    found = head(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; expires=Mon, x\r\nSet-Cookie: b=2\r\n\r\n")
    assert found.set_cookies == ("a=1; expires=Mon, x", "b=2")


def test_a_head_that_breaks_off_is_told() -> None:
    assert not head(b"HTTP/1.1 200 OK\r\nX-A: b\r\n").is_complete


def test_what_is_no_utf_8_is_latin_1() -> None:
    assert head(b"HTTP/1.1 200 \xe9t\xe9\r\n\r\n").status_text == "été"


def test_interim_responses_alone_are_no_head() -> None:
    assert read_head([b"HTTP/1.1 103 Early Hints\r\n", b"Link: a\r\n", b"\r\n"]) is None


@pytest.mark.parametrize(
    "line",
    ["HTTP/1.1 2000", "HTTP/1.1 200OK", "HTTP/1.1 20 OK", "HTTP/1.1", "http/1.1 200 OK", "X-A: b"],
)
def test_a_head_without_a_status_line_is_refused_with_what_it_begins_with(line: str) -> None:
    with pytest.raises(BadStatusLineError, match=line):
        read_head([f"{line}\r\n".encode(), b"\r\n"])


@pytest.mark.parametrize("charset", ["utf-16", "utf-32"])
def test_a_long_text_needs_no_byte_order_mark(charset: str) -> None:
    kind = parse_content_type(f"text/plain; charset={charset}")
    body = ("x" * 5000).encode(f"{charset}-le")
    stored = store_body(BodyRead(body, len(body), False), kind, even_binary=False, limit_bytes=4096)  # noqa: FBT003
    assert stored.body == "x" * (4096 // len("x".encode(f"{charset}-le")))


def test_a_media_type_is_made_printable_for_the_messages_that_quote_it() -> None:
    assert parse_content_type("application\x9bjson; charset=utf-8").media_type == (
        "application\\x9bjson"
    )
