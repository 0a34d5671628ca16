import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.targets import (
    ascii_host,
    dns_name_problem,
    header_problem,
    hostname_problem,
    url_problem,
)

LONG = "a" * 64


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "HTTPS://a/b",
        "{{BASE}}/health",
        "https://{{HOST}}/x?y={{Z}}",
        "http://[::1]:8080/",
        "http://[fe80::1%25eth0]/",
        "http://user:word@a.test:1/?q=a b#c",
        "http://bücher.test/",
        "http://my_host/",
        "http://10.0.0.1",
        "http://a.test:/",
    ],
)
def test_a_url_is_http_or_begins_with_a_variable(url: str) -> None:
    assert url_problem(url) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://a", "must begin with http://"),
        ("a.test", "must begin with http://"),
        ("//a", "must begin with http://"),
        (" http://a", "must begin with http://"),
        ("javascript:alert(1)", "must begin with http://"),
        ("a/{{PATH}}", "must begin with http://"),
        ("http://", "has no host"),
        ("http:///path", "has no host"),
        ("http://:80/", "has no host"),
        ("http://a:99999/", "port"),
        ("http://a:0/", "port"),
        ("http://a:http/", "port"),
        ("http://[::1/", "only IPv6 addresses have brackets"),
        ("http://a b/", "without scheme, port or path"),
        ("http://a%2fb/", "without scheme, port or path"),
        ("http://a..b/", "two dots in a row"),
        ("http://300.1.2.3/", "is not a valid IPv4 address"),
        (f"http://{LONG}.test/", "more than 63 characters"),
    ],
)
def test_another_url_is_refused_without_showing_it(url: str, words: str) -> None:
    problem = url_problem(url)
    assert problem is not None
    assert words in problem
    assert url not in problem


@pytest.mark.parametrize(
    "host",
    [
        "a",
        "a.b.test",
        "a.test.",
        "10.0.0.1",
        "::1",
        "[::1]",
        "fe80::1%eth0",
        "{{HOST}}",
        "my_host",
        "123",
        "bücher.test",
        "a" * 63,
    ],
)
def test_a_host_is_a_name_or_an_address(host: str) -> None:
    assert hostname_problem(host) is None


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("http://a", "without scheme, port or path"),
        ("a/b", "without scheme, port or path"),
        ("u@a", "without scheme, port or path"),
        ("a b", "without scheme, port or path"),
        ("a\n", "without scheme, port or path"),
        ("a:80", "use the field port"),
        ("[::1]:80", "is not a valid IPv6 address"),
        ("::g", "is not a valid IPv6 address"),
        ("1.2.3.256", "is not a valid IPv4 address"),
        ("[a]", "brackets"),
        (".a", "two dots in a row or begin with a dot"),
        ("a..b", "two dots in a row or begin with a dot"),
        (LONG, "more than 63 characters"),
        (".".join(["a" * 60] * 5), "253 characters"),
        ("\ue000.test", "no host name can have"),
    ],
)
def test_what_cannot_be_a_host_is_refused(host: str, words: str) -> None:
    problem = hostname_problem(host)
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("db.test:5432", "is db.test:5432, which must not contain a port; use the field port"),
        ("1.2.3.256", "is 1.2.3.256, which is not a valid IPv4 address"),
        ("root:hush", "must not contain a port; use the field port"),
        ("u:hush@a", "must be a host name or an IP address, without scheme, port or path"),
        (f"{LONG}", "has a part of more than 63 characters between two dots"),
    ],
)
def test_a_host_is_shown_where_it_is_no_more_than_a_name(host: str, problem: str) -> None:
    assert hostname_problem(host) == problem
    assert host not in (url_problem(f"http://{host}/hush") or "")


@pytest.mark.parametrize(
    "name",
    [
        "shop.test",
        ".",
        "10.0.0.1",
        "2001:db8::1",
        "_dmarc.shop.test",
        "*.shop.test",
        "0/25.2.0.192.in-addr.arpa",
        "My Printer._ipp._tcp.local",
        r"a\.b.test",
        "{{ZONE}}",
    ],
)
def test_a_dns_name_may_hold_more_letters_than_a_host(name: str) -> None:
    assert dns_name_problem(name) is None


@pytest.mark.parametrize("name", ["http://shop.test", "a..b", f"{LONG}.test", "a\nb"])
def test_what_cannot_be_a_dns_name_is_refused(name: str) -> None:
    assert dns_name_problem(name) is not None


def test_a_header_stays_on_its_line() -> None:
    assert header_problem("x-tenant", "north") is None
    assert header_problem("x-tenant", "north\r\nx-other: 1") is not None


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a b", "a"), ("Authorization: Bearer hush", "Authorization"), ("x-b3-Id\ty", "x-b3-Id")],
)
def test_a_header_name_ends_where_none_may_go_on(name: str, shown: str) -> None:
    problem = f"is called {shown}…; header names may not contain white space or a colon"
    assert header_problem(name, "hush") == problem


@pytest.mark.parametrize(
    "name",
    [
        "sid=hush; Path=/",
        f"pl_{'hush' * 10} ,",
        "eyJ0.hush x",
        "x\u202ehush y",
        "\x1b[31mhush y",
        ":hush",
    ],
)
def test_a_cookie_or_a_key_in_the_place_of_a_headers_name_is_not_told(name: str) -> None:
    problem = "has a name with white space or a colon, which header names may not contain"
    assert header_problem(name, "Cookie") == problem


@pytest.mark.parametrize("name", [" accept", "accept ", " accept\t", " ", ""])
def test_blanks_around_a_headers_name_are_taken_as_they_are_not_sent(name: str) -> None:
    assert header_problem(name, "text/html") is None


@pytest.mark.parametrize("name", ["x-tenant", "{{ NAME }}", "x-{{ NAME }}", "x_(1)!"])
def test_a_header_name_may_be_filled_in(name: str) -> None:
    assert header_problem(name, "north") is None


@given(st.text())
def test_every_text_gets_a_verdict(text: str) -> None:
    for problem in (url_problem, hostname_problem, dns_name_problem):
        assert problem(text) is None or problem(text) != ""
    assert url_problem(f"http://{text}") is None or url_problem(f"http://{text}") != ""


@pytest.mark.parametrize(
    ("host", "encoded"),
    [
        ("shop.example", "shop.example"),
        ("My_Host.Example.", "My_Host.Example."),
        ("faß.example", "xn--fa-hia.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("_dmarc.bücher.example.", "_dmarc.xn--bcher-kva.example."),
        ("bücher。example", "xn--bcher-kva.example"),
        ("βόλος.example", "xn--nxasmm1c.example"),
        ("ΒΌΛΟΣ.example", "xn--nxasmq6b.example"),
        ("☃.example", "xn--n3h.example"),
        ("💩.example", "xn--ls8h.example"),
        ("l·l.example", "xn--ll-0ea.example"),
        ("*.bücher.example", "*.xn--bcher-kva.example"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
    ],
)
def test_a_host_is_encoded_as_browsers_do(host: str, encoded: str) -> None:
    assert ascii_host(host) == encoded


@pytest.mark.parametrize(
    "host",
    [
        "\u200d.example",
        "\u0301a.example",
        "a\u05d0b.example",
        "\u2100.example",  # it stands for a/c
        "a\uff1a80.example",  # a full-width colon
        "\ufffd.example",
    ],
)
def test_what_can_be_no_host_is_refused(host: str) -> None:
    with pytest.raises(UnicodeError):
        ascii_host(host)
    assert hostname_problem(host) is not None
