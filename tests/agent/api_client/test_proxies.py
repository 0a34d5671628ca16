"""Which proxy the agent's own traffic takes."""

import pytest

from agent.api_client.proxies import build_proxy_environment, bypasses, choose_proxy, is_loopback


@pytest.mark.parametrize(
    ("rule", "host", "port", "bypassed"),
    [
        ("*", "picket.example", 443, True),
        ("picket.example", "picket.example", 443, True),
        ("picket.example", "PICKET.example.", 443, True),
        ("example", "picket.example", 443, True),
        (".example", "picket.example", 443, True),
        ("*.example", "picket.example", 443, True),
        ("icket.example", "picket.example", 443, False),
        ("picket.example:8443", "picket.example", 443, False),
        ("picket.example:443", "picket.example", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.1.2.3", "10.1.2.3", 80, True),
        ("10.1.2.3:81", "10.1.2.3", 80, False),
        ("fd00::/8", "fd00::1", 80, True),
        ("2.3", "10.1.2.3", 80, False),
    ],
)
def test_no_proxy_names_hosts(rule: str, host: str, port: int, *, bypassed: bool) -> None:
    assert bypasses(host, port=port, no_proxy=("other", rule)) is bypassed


@pytest.mark.parametrize(
    ("service", "https", "http", "chosen"),
    [
        ("https://s.example", "http://a:1", "http://b:2", "http://a:1"),
        ("https://s.example", None, "http://b:2", "http://b:2"),
        ("http://s.example", "http://a:1", "http://b:2", "http://b:2"),
        ("http://s.example", "http://a:1", None, None),
        ("https://s.example", None, None, None),
    ],
)
def test_the_proxy_follows_the_services_scheme(
    service: str, https: str | None, http: str | None, chosen: str | None
) -> None:
    proxy = choose_proxy(service, https_proxy=https, http_proxy=http, no_proxy=())
    assert (None if proxy is None else proxy.url) == chosen


def test_no_proxy_wins() -> None:
    proxy = choose_proxy(
        "https://s.example", https_proxy="http://a:1", http_proxy=None, no_proxy=("s.example",)
    )
    assert proxy is None


def test_credentials_are_kept_apart_and_hidden() -> None:
    proxy = choose_proxy(
        "https://s.example", https_proxy="http://me:p%40ss@a:1", http_proxy=None, no_proxy=()
    )
    assert proxy is not None
    assert (proxy.url, proxy.username, proxy.password) == ("http://a:1", "me", "p@ss")
    assert "p@ss" not in repr(proxy)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8", True),
        ("http://[::1]:8", True),
        ("http://localhost", True),
        ("http://10.0.0.1", False),
        ("https://picket.example", False),
    ],
)
def test_loopback_is_known(url: str, *, local: bool) -> None:
    assert is_loopback(url) is local


def test_package_managers_get_the_agents_proxies_by_the_names_that_they_read() -> None:
    told = build_proxy_environment(https_proxy=None, http_proxy="http://a:1", no_proxy=("b", ".c"))
    assert told == {"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://a:1", "NO_PROXY": "b,.c"}
    assert build_proxy_environment(https_proxy=None, http_proxy=None, no_proxy=()) == {}
