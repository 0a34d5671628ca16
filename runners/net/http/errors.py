"""Why an exchange failed, as a failure of the check."""

import errno
import os
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
import pycurl

from contract.requests import HttpVersion, IpFamily
from contract.result import Failure, FailureKind
from runners.net.http.request import HopRequest
from runners.net.http.tls import verify_error
from runners.net.http.transfer import TransferResult
from runners.net.tls.words import CLOSED_FOR_CERTIFICATE, handshake_fault


class FailedHop(msgspec.Struct, frozen=True, kw_only=True):
    """One hop that failed, with all that its message may need."""

    hop: HopRequest
    seen: TransferResult
    timeout_s: float
    """The time limit of the whole check."""
    now: datetime
    proxy: str | None = None
    """The proxy without credentials. None: direct."""

    @property
    def target(self) -> str:
        """The peer as people name it: host and port, the address beside a name."""
        origin, address = self.hop.origin, self.seen.address
        if self.proxy is not None or address in {"", origin.host}:
            return str(origin)
        return f"{origin} ({address})"

    def failure(self, kind: FailureKind, message: str, code: str, **more: str | int) -> Failure:
        """Make a failure, with the facts that every one carries."""
        origin = self.hop.origin
        detail: dict[str, str | int | float | None] = {
            "code": code,
            "hostname": origin.host,
            "port": origin.port,
            **more,
        }
        if self.seen.address and self.proxy is None:
            detail["address"] = self.seen.address
        return Failure(kind=kind, message=message, detail=detail)

    @property
    def words(self) -> str:
        """Libcurl's error message, without its full stop."""
        return self.seen.ended.message.strip().rstrip(".") or "no reason given"


_TUNNEL: Final = "tunnel failed"
"""libcurl's words for a proxy that refuses: `CONNECT tunnel failed, response 502`."""
_NO_UDP_PROXY: Final = "not supported over"
"""libcurl's words for HTTP/3 by a proxy that carries no UDP."""
PROXY_AUTH_REQUIRED: Final = 407
"""Proxy Authentication Required."""
_PROXY_KIND: Final = "Unsupported proxy"


def dns_failure(attempt: FailedHop) -> Failure:
    """The name has no address of the family asked for."""
    family = "IPv6" if attempt.hop.family is IpFamily.IPV6 else "IPv4"
    host = attempt.hop.origin.host
    return attempt.failure(
        FailureKind.DNS,
        f"The name {host} does not resolve to an {family} address.",
        "ENOTFOUND",
        syscall="queryAaaa" if attempt.hop.family is IpFamily.IPV6 else "queryA",
    )


def proxy_dns_failure(attempt: FailedHop) -> Failure:
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


def connect_failure(attempt: FailedHop) -> Failure:
    """No connection was made: to the target, to the proxy, or by the proxy."""
    number = attempt.seen.errno
    if is_proxy_refusal(attempt):
        return proxy_failure(attempt)
    if attempt.hop.http_version is HttpVersion.HTTP_3 and attempt.proxy is None:
        return quic_failure(attempt)
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


def is_proxy_refusal(attempt: FailedHop) -> bool:
    """Whether it was the proxy that would not, or could not, lead to the target."""
    return _TUNNEL in attempt.words or _NO_UDP_PROXY in attempt.words


def proxy_failure(attempt: FailedHop) -> Failure:
    """The proxy was reached and did not connect to the target."""
    if attempt.words.endswith(f"response {PROXY_AUTH_REQUIRED}"):
        return proxy_auth_failure(attempt)
    return attempt.failure(
        FailureKind.CONNECT,
        f"The location's proxy {attempt.proxy} did not connect to {attempt.hop.origin}: "
        f"{attempt.words}.",
        "EPROXY",
    )


def proxy_auth_failure(attempt: FailedHop) -> Failure:
    """The proxy requires credentials, and was given none or wrong ones."""
    return attempt.failure(
        FailureKind.CONNECT,
        f"The location's proxy {attempt.proxy} answered {PROXY_AUTH_REQUIRED} and did not connect "
        f"to {attempt.hop.origin}: user and password in its proxyUrl are missing or wrong.",
        "EPROXY",
    )


def quic_failure(attempt: FailedHop) -> Failure:
    """The check insists on HTTP/3, and nothing answered it."""
    return attempt.failure(
        FailureKind.CONNECT,
        f"Nothing answered HTTP/3 (QUIC over UDP) at {attempt.target}.",
        "EQUIC",
    )


_LOCAL_ERRNOS: Final = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS),
        # All local ports are in use, or this machine has no such family: another agent may do.
        *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT),
    }
)

# Codes of libcurl that this pycurl has no name for.
_WEIRD_SERVER_REPLY: Final = 8
_HTTP2_STREAM: Final = 92
_HTTP3: Final = 95
_QUIC_CONNECT: Final = 96
_PROXY: Final = 97
_TOO_LARGE: Final = 100
_CLIENT_CERTIFICATE_REQUIRED: Final = 98


_CLOSED_BY_PEER: Final = re.compile("ERR_DRAINING|reset by server")
"""libcurl's words for a QUIC connection, or one of its streams, that the server ended."""


class EngineError(RuntimeError):
    """libcurl failed for a reason that is not the target's."""


def to_failure(attempt: FailedHop) -> Failure:
    """Turn a transfer that libcurl ended with an error into a failure of the check.

    Raises:
        OSError: we are out of descriptors, ports or memory.
        EngineError: libcurl failed for a reason of its own.
    """
    seen = attempt.seen
    if seen.errno in _LOCAL_ERRNOS:
        raise OSError(seen.errno, os.strerror(seen.errno))
    if seen.refusal is not None:
        return attempt.failure(FailureKind.EGRESS, seen.refusal, "EGRESS_REFUSED")
    make_failure = _FAILURES.get(seen.ended.code)
    if make_failure is None:
        raise EngineError(f"libcurl ended with code {seen.ended.code}: {seen.ended.message}")
    return make_failure(attempt)


def _timeout_failure(attempt: FailedHop) -> Failure:
    limit = f"within {attempt.timeout_s:g} s"
    phase, sentence = _find_hung_phase(attempt)
    return attempt.failure(
        FailureKind.TIMEOUT, sentence.format(limit=limit), "ETIMEDOUT", phase=phase
    )


def _find_hung_phase(attempt: FailedHop) -> tuple[str, str]:
    """The phase that did not end, and its sentence."""
    times, origin, target = attempt.seen.times, attempt.hop.origin, attempt.target
    if not times.dns:
        return "dns", f"The name {origin.host} was not resolved {{limit}}."
    if not times.tcp:
        if attempt.hop.http_version is HttpVersion.HTTP_3:
            return "tcp", f"Nothing answered HTTP/3 (QUIC over UDP) at {target} {{limit}}."
        return "tcp", f"No connection to {target} {{limit}}."
    if origin.scheme == "https" and not times.tls:
        return "tls", f"No TLS handshake with {target} {{limit}}."
    if attempt.seen.head is None or not times.first_byte:
        return "firstByte", f"No first byte from {target} {{limit}}."
    return "download", (
        f"The body from {target} stalled after {attempt.seen.body_bytes} bytes; "
        "it was not complete {limit}."
    )


def _certificate_failure(attempt: FailedHop) -> Failure:
    why = verify_error(attempt.seen, host=attempt.hop.origin.host, now=attempt.now)
    return attempt.failure(
        FailureKind.TLS,
        f"The certificate of {attempt.target} cannot be trusted: {why}.",
        "CERT_INVALID",
        verifyCode=attempt.seen.verify_result,
    )


def _handshake_failure(attempt: FailedHop) -> Failure:
    fault = handshake_fault(attempt.words)
    if (
        "no application protocol" in attempt.words
        and attempt.hop.http_version is HttpVersion.HTTP_2
    ):
        fault = "it does not offer HTTP/2"
    return attempt.failure(
        FailureKind.TLS, f"{attempt.target} did not agree on TLS: {fault}.", "EPROTO"
    )


def _client_certificate_failure(attempt: FailedHop) -> Failure:
    return attempt.failure(
        FailureKind.TLS,
        f"The client certificate for {attempt.hop.origin.host} cannot be used: {attempt.words}.",
        "ERR_CLIENT_CERTIFICATE",
    )


def _empty_response_failure(attempt: FailedHop) -> Failure:
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection without an answer.",
        "ECONNRESET",
    )


def _partial_body_failure(attempt: FailedHop) -> Failure:
    read = attempt.seen.body_bytes
    announced = attempt.seen.head.headers.get("content-length") if attempt.seen.head else None
    of = f" of {announced}" if announced else ""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection in the middle of the body, "
        f"after {read}{of} bytes.",
        "ERR_INCOMPLETE_BODY",
    )


def _receive_failure(attempt: FailedHop) -> Failure:
    words = attempt.words
    if is_proxy_refusal(attempt):
        return proxy_failure(attempt)
    if attempt.hop.http_version is HttpVersion.HTTP_3:
        return _quic_close_failure(attempt)
    if attempt.seen.wants_certificate and attempt.seen.head is None and "alert" not in words:
        return _missing_certificate_failure(attempt)
    if "reset by peer" in words.lower():
        where = _say_when(attempt)
        return attempt.failure(
            FailureKind.CONNECT, f"{attempt.target} reset the connection {where}.", "ECONNRESET"
        )
    if "alert" in words or "SSL" in words:
        return attempt.failure(
            FailureKind.TLS,
            f"{attempt.target} broke off TLS: {handshake_fault(words)}.",
            "EPROTO",
        )
    return _protocol_failure(attempt)


def _missing_certificate_failure(attempt: FailedHop) -> Failure:
    """With TLS 1.3 a server's refusal comes when we speak already, and its reason may be lost."""
    return attempt.failure(
        FailureKind.TLS,
        f"{attempt.target} broke off TLS: {CLOSED_FOR_CERTIFICATE}.",
        "EPROTO",
    )


def _quic_close_failure(attempt: FailedHop) -> Failure:
    """A QUIC connection that its peer closed, or that broke."""
    if not attempt.seen.times.tls:
        return quic_failure(attempt) if attempt.proxy is None else proxy_failure(attempt)
    if not _CLOSED_BY_PEER.search(attempt.words):
        return _protocol_failure(attempt)
    return (
        _empty_response_failure(attempt)
        if attempt.seen.head is None
        else _partial_body_failure(attempt)
    )


def _say_when(attempt: FailedHop) -> str:
    if attempt.seen.head is None:
        return "before it answered"
    return f"in the middle of the body, after {attempt.seen.body_bytes} bytes"


def _encoding_failure(attempt: FailedHop) -> Failure:
    head = attempt.seen.head
    encoding = head.headers.get("content-encoding", "") if head else ""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"The body from {attempt.target} says it is encoded as {encoding} and cannot be "
        f"decoded: {attempt.words}.",
        "ERR_CONTENT_ENCODING",
    )


def _protocol_failure(attempt: FailedHop) -> Failure:
    words = attempt.words
    if "HTTP/0.9" in words:
        words = "what it sent is no HTTP"
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} did not answer as {_name_version(attempt)} demands: {words}.",
        "EPROTO",
    )


def _large_headers_failure(attempt: FailedHop) -> Failure:
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} sent more headers than are read.",
        "ERR_TOO_LARGE_HEADERS",
    )


def _url_failure(attempt: FailedHop) -> Failure:
    if is_proxy_refusal(attempt):
        return proxy_failure(attempt)
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.hop.url} is no URL that can be asked: {attempt.words}.",
        "ERR_INVALID_URL",
    )


def _name_version(attempt: FailedHop) -> str:
    names = {HttpVersion.HTTP_2: "HTTP/2", HttpVersion.HTTP_3: "HTTP/3"}
    return names.get(attempt.hop.http_version, "HTTP")


_FAILURES: Final[dict[int, Callable[[FailedHop], Failure]]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: _protocol_failure,
    pycurl.E_URL_MALFORMAT: _url_failure,
    pycurl.E_COULDNT_RESOLVE_PROXY: proxy_dns_failure,
    pycurl.E_COULDNT_RESOLVE_HOST: dns_failure,
    pycurl.E_COULDNT_CONNECT: connect_failure,
    _WEIRD_SERVER_REPLY: _protocol_failure,
    pycurl.E_HTTP2: _protocol_failure,
    pycurl.E_PARTIAL_FILE: _partial_body_failure,
    pycurl.E_OPERATION_TIMEDOUT: _timeout_failure,
    pycurl.E_SSL_CONNECT_ERROR: _handshake_failure,
    pycurl.E_GOT_NOTHING: _empty_response_failure,
    pycurl.E_SEND_ERROR: _receive_failure,
    pycurl.E_RECV_ERROR: _receive_failure,
    pycurl.E_SSL_CERTPROBLEM: _client_certificate_failure,
    pycurl.E_SSL_CIPHER: _handshake_failure,
    pycurl.E_PEER_FAILED_VERIFICATION: _certificate_failure,
    pycurl.E_BAD_CONTENT_ENCODING: _encoding_failure,
    _HTTP2_STREAM: _protocol_failure,
    _HTTP3: _quic_close_failure,
    _QUIC_CONNECT: quic_failure,
    _PROXY: proxy_failure,
    _CLIENT_CERTIFICATE_REQUIRED: _handshake_failure,
    _TOO_LARGE: _large_headers_failure,
}
