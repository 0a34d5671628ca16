"""Which proxy, if any, the agent's own traffic takes: that to its service, and package managers."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy's address, its credentials apart, so that the address may be logged."""

    url: str
    username: str | None = field(default=None, repr=False)
    """None: it asks for none."""
    password: str = field(default="", repr=False)


def choose_proxy(
    service_url: str,
    *,
    https_proxy: str | None,
    http_proxy: str | None,
    no_proxy: tuple[str, ...],
) -> Proxy | None:
    """The proxy for this service. None: direct.

    `http_proxy` serves an https service too when `https_proxy` is not set.
    """
    parts = urlsplit(service_url)
    chosen = http_proxy if parts.scheme == "http" else https_proxy or http_proxy
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if chosen is None or bypasses(parts.hostname or "", port=port, no_proxy=no_proxy):
        return None
    return _parse_proxy(chosen)


def build_proxy_environment(
    *, https_proxy: str | None, http_proxy: str | None, no_proxy: tuple[str, ...]
) -> dict[str, str]:
    """The environment variables that tell programs which the agent starts about its proxies."""
    variables = {
        "HTTPS_PROXY": https_proxy or http_proxy,
        "HTTP_PROXY": http_proxy,
        "NO_PROXY": ",".join(no_proxy),
    }
    return {name: value for name, value in variables.items() if value}


def bypasses(host: str, *, port: int, no_proxy: tuple[str, ...]) -> bool:
    """Whether a host is named by `NO_PROXY`: itself, a suffix, a network, a port, or `*`."""
    return any(_matches(rule.lower(), host.lower().rstrip("."), port) for rule in no_proxy)


def is_loopback(service_url: str) -> bool:
    """Whether the service is on this machine."""
    host = urlsplit(service_url).hostname or ""
    address = _parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _matches(rule: str, host: str, port: int) -> bool:
    if rule == "*":
        return True
    address = _parse_address(host)
    if address is not None and _contains(rule, address):
        return True
    name, _, only_port = rule.partition(":")
    if only_port.isdigit() and int(only_port) != port:
        return False
    name = (name if only_port.isdigit() else rule).removeprefix("*").removeprefix(".").strip("[]")
    return host == name or (address is None and host.endswith(f".{name}"))


def _contains(rule: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(rule, strict=False)
    except ValueError:
        return False


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _parse_proxy(url: str) -> Proxy:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return Proxy(
        url=f"{parts.scheme}://{place}",
        username=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
    )
