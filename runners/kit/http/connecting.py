"""Targets that could not be found or connected to, and the proxies before them. Pure."""

import errno
import os
from typing import Final

from contract.requests import HttpVersion, IpFamily
from contract.result import Failure, FailureKind
from runners.kit.http.attempt import Attempt

_TUNNEL: Final = "tunnel failed"
"""libcurl's words for a proxy that refuses: `CONNECT tunnel failed, response 502`."""
_NOT_OVER_PROXY: Final = "not supported over"
"""libcurl's words for HTTP/3 by a proxy that carries no UDP."""
ASKS_FOR_CREDENTIALS: Final = 407
"""Proxy Authentication Required."""
_PROXY_KIND: Final = "Unsupported proxy"


def unresolved(attempt: Attempt) -> Failure:
    """The name has no address of the family asked for."""
    family = "IPv6" if attempt.hop.family is IpFamily.IPV6 else "IPv4"
    host = attempt.hop.origin.host
    return attempt.failure(
        FailureKind.DNS,
        f"The name {host} does not resolve to an {family} address.",
        "ENOTFOUND",
        syscall="queryAaaa" if attempt.hop.family is IpFamily.IPV6 else "queryA",
    )


def proxy_unresolved(attempt: Attempt) -> Failure:
    """The name of the location's proxy has no address."""
    return attempt.failure(
        FailureKind.DNS,
        f"The name of the location's proxy {attempt.proxy} does not resolve.",
        "ENOTFOUND",
    )


_CONNECT_ERRORS: Final = {
    errno.ECONNREFUSED: "Nothing listens on {target} (connection refused).",
    errno.EHOSTUNREACH: "{target} cannot be reached (no route to host).",
    errno.ENETUNREACH: "{target} cannot be reached (network is unreachable).",
    errno.ETIMEDOUT: "{target} did not answer the connection attempt (timed out).",
    errno.ECONNRESET: "{target} reset the connection while it was being made.",
    errno.EACCES: "{target} cannot be reached (a firewall or a route forbids it).",
    errno.EPERM: "{target} cannot be reached (a firewall of this machine forbids it).",
    errno.EINVAL: "{target} cannot be reached (this machine has no way to such an address).",
}


def not_connected(attempt: Attempt) -> Failure:
    """No connection was made: to the target, to the proxy, or by the proxy."""
    number = attempt.seen.errno
    if refused_by_proxy(attempt):
        return proxy_failed(attempt)
    if attempt.hop.http_version is HttpVersion.HTTP_3 and attempt.proxy is None:
        return no_quic(attempt)
    target = attempt.target if attempt.proxy is None else f"the location's proxy {attempt.proxy}"
    known = _CONNECT_ERRORS.get(number, "{target} cannot be reached: {reason}.")
    reason = os.strerror(number) if number else attempt.words
    if _PROXY_KIND in reason:  # the rest of libcurl's sentence is the address with its password
        reason = "its kind is not known"
    message = known.format(target=target, reason=reason)
    if attempt.proxy is not None:  # a host's name keeps its letters
        message = message[0].upper() + message[1:]
    code = errno.errorcode.get(number, "ECONNFAILED")
    return attempt.failure(FailureKind.CONNECT, message, code, syscall="connect")


def refused_by_proxy(attempt: Attempt) -> bool:
    """Whether it was the proxy that would not, or could not, lead to the target."""
    return _TUNNEL in attempt.words or _NOT_OVER_PROXY in attempt.words


def proxy_failed(attempt: Attempt) -> Failure:
    """The proxy was reached and did not connect to the target."""
    if attempt.words.endswith(f"response {ASKS_FOR_CREDENTIALS}"):
        return not_let_through(attempt)
    return attempt.failure(
        FailureKind.CONNECT,
        f"The location's proxy {attempt.proxy} did not connect to {attempt.hop.origin}: "
        f"{attempt.words}.",
        "EPROXY",
    )


def not_let_through(attempt: Attempt) -> Failure:
    """The proxy wants other credentials than those that it was given, if any."""
    return attempt.failure(
        FailureKind.CONNECT,
        f"The location's proxy {attempt.proxy} answered {ASKS_FOR_CREDENTIALS} and did not connect "
        f"to {attempt.hop.origin}: user and password in its proxyUrl are missing or wrong.",
        "EPROXY",
    )


def no_quic(attempt: Attempt) -> Failure:
    """A check insists on HTTP/3, and nothing answered it."""
    return attempt.failure(
        FailureKind.CONNECT,
        f"Nothing answered HTTP/3 (QUIC over UDP) at {attempt.target}.",
        "EQUIC",
    )
