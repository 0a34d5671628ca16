"""Which messages are of one group."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.error_groups.rules import MOST_CHARS, clean_message, hash_message

ALIKE: dict[str, tuple[str, ...]] = {
    "URL: connection": (
        "No connection to 127.0.0.1:8443 within 0.3 s.",
        "No connection to [2001:db8::1]:443 within 10 s.",
    ),
    "URL: refused": (
        "Nothing listens on 10.0.0.7:80 (connection refused).",
        "Nothing listens on 2001:db8::5 (connection refused).",
    ),
    "API: body": (
        "shop.example:443 closed the connection in the middle of the body, after 4 of 8 bytes.",
        "shop.example:443 closed the connection in the middle of the body, after 1.5 of 3 kB.",
        "shop.example:8443 closed the connection in the middle of the body, after 77 of 80 bytes.",
    ),
    "API: assertion": (
        "JSON_BODY `$.prices[*]` should be greater than 6, but it is 5.",
        "JSON_BODY `$.prices[*]` should be greater than 6, but it is 0.25.",
    ),
    "API: text": (
        "STATUS_CODE should equal `OK`, but it is 200 (`OK` is not a number).",
        "STATUS_CODE should equal `Fine`, but it is 404 (`Fine` is not a number).",
    ),
    "API: slow": (
        "It took 5000.2 ms; the limit is 5000 ms.",
        "It took 12 s; the limit is 5000 ms.",
    ),
    "API: redirect": (
        "Gave up after 10 redirects; the last one pointed to https://shop.example/a?session=1.",
        "Gave up after 20 redirects; the last one pointed to https://shop.example/a?session=x#y.",
    ),
    "API: certificate": (
        "The certificate of shop.example cannot be trusted: it expired on Jan  5 09:34:43 2018 GMT",
        "The certificate of shop.example cannot be trusted: it expired on Nov 17 23:59:59 2026 GMT",
    ),
    "TCP": (
        "Waited 0.2 s for 127.0.0.1:25 to accept the connection.",
        "Waited 10 s for 192.0.2.1:2525 to accept the connection.",
    ),
    "DNS": (
        "127.0.0.1:53 answered REFUSED for a.test A; only NOERROR passes.",
        "192.0.2.53:5353 answered REFUSED for a.test A; only NOERROR passes.",
    ),
    "ICMP": (
        "20.5 % of the packets to shop.example (10.0.0.1) were lost; the check fails at 20 %.",
        "100 % of the packets to shop.example (2001:db8::7) were lost; the check fails at 20 %.",
    ),
    "HEARTBEAT": (
        "The last ping came 1 h 2 min ago; one is due every 1 min, with 30 s of grace.",
        "The last ping came 45 s ago; one is due every 1 min, with 30 s of grace.",
        "The last ping came 2 d ago; one is due every 1 min, with 30 s of grace.",
    ),
    "BROWSER: step": (
        "Test timeout of 5000ms exceeded in “Click the button” (s.js:2:3)",
        "Test timeout of 30000ms exceeded in “Click the button” (s.js:14:30)",
    ),
    "BROWSER: call log": (
        "TimeoutError: click: Timeout 5000ms exceeded.\nCall log:\n - waiting for #a\n - retrying",
        "TimeoutError: click: Timeout 5001ms exceeded.\nCall log:\n - 3 x waiting for #a",
    ),
    "BROWSER: address": (
        "page.goto: net::ERR_CONNECTION_REFUSED at https://shop.example/orders/12345?token=abc",
        "page.goto: net::ERR_CONNECTION_REFUSED at https://shop.example/orders/77?token=def&x=1",
    ),
    "MULTI_STEP: ids": (
        "Error: order 4f9c1e7a-aaaa-4bbb-8ccc-1234567890ab of a@shop.example is lost (7d9f8b6c5)",
        "Error: order 11111111-2222-3333-4444-555555555555 of b@x.example is lost (8a0c1e2f3)",
    ),
    "MULTI_STEP: tokens": (
        "Error: bad token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N0",
        "Error: bad token eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiI5ODc2NTQzMjEwIn0.ab3cD4eF5gH6iJ7kL8mN9oP",
    ),
    "MULTI_STEP: base64": ("got aGVsbG8gd29ybGQxMjM=", "got Zm9vYmFyYmF6MTIzNDU2Nzg5MA=="),
    "PLAYWRIGHT: times": (
        "Error: no order since 2026-11-21T08:15:00.123Z",
        "Error: no order since 2026-11-22 09:00",
    ),
    "PLAYWRIGHT: files": (
        "Error: cannot read /srv/releases/8f14e45f/main.4f2c91aa.js:12:5",
        "Error: cannot read /srv/releases/0a1b2c3d/main.99aa88bb.js:1:77",
    ),
    "PLAYWRIGHT: colours": (
        'Error: \x1b[31mExpected: "a"\x1b[39m\n  Received: "b"',
        'Error: Expected: "c" Received: "d"',
    ),
}
APART = (
    "The response status is 503; anything below 400 passes.",
    "The response status is 404; anything below 400 passes.",
    "STATUS_CODE should equal 201, but it is 200.",
    "STATUS_CODE should equal 201, but it is 500.",
    "JSON_BODY `$.a` should equal 1, but it is 2.",
    "JSON_BODY `$.b` should equal 1, but it is 2.",
    "HEADERS `x-a` should not contain `x`, but there is no such value.",
    "a.example has no IPv4 address: the name does not exist.",
    "a.example has no IPv6 address: the name does not exist.",
    "b.example has no IPv4 address: the name does not exist.",
    "No connection to 127.0.0.1:8443 within 0.3 s.",
    "No first byte from 127.0.0.1:8443 within 0.3 s.",
    "127.0.0.1:53 answered REFUSED for a.test A; only NOERROR passes.",
    "127.0.0.1:53 answered NXDOMAIN for a.test A; only NOERROR passes.",
    "page.goto: net::ERR_CONNECTION_REFUSED at https://shop.example/",
    "page.goto: net::ERR_NAME_NOT_RESOLVED at https://shop.example/",
    "page.goto: net::ERR_NAME_NOT_RESOLVED at https://shop.example/cart",
    "Test timeout of 5000ms exceeded in “Click the button” (s.js:2:3)",
    "Test timeout of 5000ms exceeded in “Fill the form” (s.js:2:3)",
)
SNIPPETS = st.sampled_from(
    [
        *"'\"`<>[]().,:;/?#=&@%+-_ \n\t\x1bé“”",
        *("a", "B", "7", "12", "9f", "0x1", "::", "://", "http://h", "/p?q=1", "a@b.c", "5 ms"),
        *("Jan 5", "12:30", "2026-11-21", "<number>", "<id>", "Call log:", "\x1b[1m", "status 503"),
        *("STATUS_CODE should ", "1.2.3.4", "a1b2c3d4e5", " should ", "GMT", "kB", "HEADERS `a`"),
    ]
)
MESSAGES = st.lists(SNIPPETS | st.text(max_size=3), max_size=60).map("".join)


@pytest.mark.parametrize("name", ALIKE)
def test_messages_that_differ_by_what_changes_from_run_to_run_are_of_one_group(name: str) -> None:
    assert len({clean_message(one) for one in ALIKE[name]}) == 1


def test_messages_with_other_causes_are_of_other_groups() -> None:
    by_cleaned = {clean_message(one): one for one in APART}
    assert len(by_cleaned) == len(APART), sorted(set(APART) - set(by_cleaned.values()))


def test_no_two_kinds_of_message_are_of_one_group() -> None:
    assert len({clean_message(each) for alike in ALIKE.values() for each in alike}) == len(ALIKE)


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("it's 'x' now", "it's <value> now"),
        ("  two\n lines ", "two lines"),
        ("IPv4 sha256 i18n TLS", "IPv4 sha256 i18n TLS"),
        ("order12345 is 12px", "order<number> is <number>px"),
        ("at 0xDEADbeef, 12:30 PM", "at <id>, <time>"),
        ("GET /orders/7?page=2 took 3 ms", "GET /orders/<number>?<query> took <duration>"),
        ("pod api-7d9f8b6c5-x2x4z", "pod api-<id>-<id>"),
        ("", ""),
    ],
)
def test_what_is_replaced_is_named(raw: str, cleaned: str) -> None:
    assert clean_message(raw) == cleaned


@given(MESSAGES)
@example("<number><number> 5")
def test_cleaning_twice_changes_nothing(raw: str) -> None:
    once = clean_message(raw)
    assert clean_message(once) == once
    assert len(once) <= MOST_CHARS


@pytest.mark.parametrize(
    "part",
    ["a.", "'", "a/", "1:", "::", "x@", "a://b", "Jan 1 ", "aA1+", "1.", "`'\"", "a-1_", "A_"],
)
def test_a_huge_message_is_cut_before_it_is_cleaned(part: str) -> None:
    huge = part * 500_000
    assert clean_message(huge) == clean_message(huge[: 2 * MOST_CHARS])


def test_a_hash_depends_on_the_cleaned_message_alone() -> None:
    assert hash_message("a") == hash_message("a") == "ca978112ca1bbdcafac231b39a23dc4d"
    assert hash_message("a") != hash_message("b")
