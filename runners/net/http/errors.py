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
from runners.net.http.curl_multi import make_printable
from runners.net.http.phases import find_hung_phase, hop_timings
from runners.net.http.request import HopRequest
from runners.net.http.response import Head
from runners.net.http.tls import verify_error
from runners.net.http.transfer import TransferResult
from runners.net.sockets import TARGET_FAULTS
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
        return Failure(kind=kind, message=make_printable(message), detail=detail)

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


_CONNECT_FAULTS: Final = {
    **TARGET_FAULTS,
    errno.ETIMEDOUT: "did not answer the connection attempt (timed out)",
    errno.ECONNRESET: "reset the connection while it was being made",
}
"""What the target did to a connection attempt, by libcurl's errno."""


def connect_failure(attempt: FailedHop) -> Failure:
    """No connection was made: to the target, to the proxy, or by the proxy."""
    number = attempt.seen.errno
    if is_proxy_refusal(attempt):
        return proxy_failure(attempt)
    if attempt.hop.http_version is HttpVersion.HTTP_3 and attempt.proxy is None:
        return quic_failure(attempt)
    target = attempt.target if attempt.proxy is None else f"the location's proxy {attempt.proxy}"
    reason = os.strerror(number) if number else attempt.words
    if _PROXY_KIND in reason:  # the rest of libcurl's sentence is the address with its password
        reason = "its kind is not known"
    message = f"{target} {_CONNECT_FAULTS.get(number, f'cannot be reached: {reason}')}."
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

_OUR_CODES: Final = frozenset(
    {
        *(pycurl.E_FAILED_INIT, pycurl.E_OUT_OF_MEMORY),
        # One of our own callbacks broke.
        *(pycurl.E_WRITE_ERROR, pycurl.E_READ_ERROR, pycurl.E_ABORTED_BY_CALLBACK),
    }
)
"""What no server can cause."""

# Codes of libcurl that this pycurl has no name for.
_WEIRD_SERVER_REPLY: Final = 8
_HTTP2_STREAM: Final = 92
_HTTP3: Final = 95
_QUIC_CONNECT: Final = 96
_PROXY: Final = 97
_TOO_LARGE: Final = 100
_CLIENT_CERTIFICATE_REQUIRED: Final = 98

_SWITCHING_PROTOCOLS: Final = 101
_SHOWN_CHARS: Final = 100
"""How much of a status line a sentence shows."""
_MOST_LENGTH_DIGITS: Final = 18
"""Longer lengths may not fit into 63 bits; libcurl ignores them then."""
_UNSOLICITED: Final = re.compile(r"Unsolicited Transfer-Encoding \((.*)\) found")
_MALFORMED: Final = (
    ("HTTP/0.9", "what it sent is no HTTP"),
    ("Unsupported HTTP/1 subversion", "its status line is malformed"),
    ("Unsupported HTTP version", "its status line names an unknown version of HTTP"),
    ("Unsupported response code", "its status code is below 100"),
    ("Version mismatch", "its status line names HTTP/2 or HTTP/3 on a connection of HTTP/1"),
    ("expected SETTINGS frame", "what it sent is no HTTP/2"),
)
"""A part of libcurl's message, and what it means."""
_TOO_MANY_HEADERS: Final = re.compile(r"Too many response headers, (\d+) is max")
_TOO_LARGE_HEADERS: Final = re.compile(r"Too large response headers: \d+ > (\d+)")
_INVALID_FIELD: Final = re.compile(
    r"invalid HTTP header field.*name: \[(.*)\], value: \[(.*)\]", re.IGNORECASE
)
_BROKEN_RULE: Final = re.compile(r"(?:shuts down connection with error \d+|, error -\d+): (.+)$")
"""nghttp2's words for frames that HTTP/2 does not allow."""
_GOAWAY: Final = re.compile(r"received GOAWAY, error=(\d+)")
_RESET: Final = re.compile(r"HTTP/2 stream \d+ reset by server \(error 0x([0-9a-f]+) ")
_HTTP_2_ERRORS: Final = {
    0: "NO_ERROR",
    1: "PROTOCOL_ERROR",
    2: "INTERNAL_ERROR",
    3: "FLOW_CONTROL_ERROR",
    4: "SETTINGS_TIMEOUT",
    5: "STREAM_CLOSED",
    6: "FRAME_SIZE_ERROR",
    7: "REFUSED_STREAM",
    8: "CANCEL",
    9: "COMPRESSION_ERROR",
    10: "CONNECT_ERROR",
    11: "ENHANCE_YOUR_CALM",
    12: "INADEQUATE_SECURITY",
    13: "HTTP_1_1_REQUIRED",
}
"""Error codes of HTTP/2 (RFC 9113, section 7)."""
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
    if seen.undecodable is not None:
        return _encoding_failure(attempt, seen.undecodable)
    if seen.ended.code != pycurl.E_OPERATION_TIMEDOUT:
        ended_early = _http_2_failure(attempt)
        if ended_early is not None:
            return ended_early
    make_failure = _FAILURES.get(seen.ended.code)
    if make_failure is None:
        # Once there was a connection, whatever else libcurl did not like was sent on it.
        if seen.ended.code in _OUR_CODES or not seen.times.tcp:
            raise EngineError(f"libcurl ended with code {seen.ended.code}: {seen.ended.message}")
        make_failure = _protocol_failure
    return make_failure(attempt)


def _timeout_failure(attempt: FailedHop) -> Failure:
    timings = hop_timings(attempt.hop, attempt.seen, proxied=attempt.proxy is not None)
    phase = find_hung_phase(timings)
    shown = "firstByte" if phase == "first_byte" else phase
    sentence = _HUNG[phase](attempt, f"within {attempt.timeout_s:g} s")
    return attempt.failure(FailureKind.TIMEOUT, sentence, "ETIMEDOUT", phase=shown)


def _hung_in_tcp(attempt: FailedHop, limit: str) -> str:
    if attempt.hop.http_version is HttpVersion.HTTP_3:
        return f"Nothing answered HTTP/3 (QUIC over UDP) at {attempt.target} {limit}."
    return f"No connection to {attempt.target} {limit}."


def _hung_before_answer(attempt: FailedHop, limit: str) -> str:
    if attempt.seen.header_lines:
        return f"No final response from {attempt.target} {limit}; it sent interim ones only."
    return f"No first byte from {attempt.target} {limit}."


def _hung_in_answer(attempt: FailedHop, limit: str) -> str:
    seen, target = attempt.seen, attempt.target
    if seen.head is not None and not seen.head.is_complete:
        how = "were still arriving" if seen.is_arriving else "stalled"
        return (
            f"The headers from {target} {how} after {seen.header_lines} lines; "
            f"they were not complete {limit}."
        )
    how = f"{'was still arriving' if seen.is_arriving else 'stalled'} after {seen.body_bytes} bytes"
    return f"The body from {target} {how}; it was not complete {limit}."


_HUNG: Final[dict[str, Callable[[FailedHop, str], str]]] = {
    "dns": lambda attempt, limit: f"The name {attempt.hop.origin.host} was not resolved {limit}.",
    "tcp": _hung_in_tcp,
    "tls": lambda attempt, limit: f"No TLS handshake with {attempt.target} {limit}.",
    "first_byte": _hung_before_answer,
    "download": _hung_in_answer,
}
"""What is said of a time-out in each phase."""


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


def no_response_failure(attempt: FailedHop) -> Failure:
    """A connection that ended without a final response."""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection without an answer.",
        "ECONNRESET",
    )


def _partial_body_failure(attempt: FailedHop) -> Failure:
    read = attempt.seen.body_bytes
    announced = attempt.seen.head.headers.get("content-length") if attempt.seen.head else None
    of = f" of {announced.partition(',')[0]}" if announced else ""
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
        no_response_failure(attempt)
        if attempt.seen.head is None
        else _partial_body_failure(attempt)
    )


def _say_when(attempt: FailedHop) -> str:
    if attempt.seen.head is None:
        return "before it answered"
    return f"in the middle of the body, after {attempt.seen.body_bytes} bytes"


def _encoding_failure(attempt: FailedHop, why: str) -> Failure:
    head = attempt.seen.head
    encoding = head.headers.get("content-encoding", "") if head else ""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"The body from {attempt.target} says it is encoded as {encoding} and cannot be "
        f"decoded: {why}.",
        "ERR_CONTENT_ENCODING",
    )


def is_sound(seen: TransferResult) -> bool:
    """Whether a transfer brought a response without any flaw, as nearly all do."""
    head = seen.head
    return (
        head is not None
        and not seen.ended.code
        and head.is_complete
        and head.status_code != _SWITCHING_PROTOCOLS
        and seen.cut_coding is None
        and len(head.headers.get("content-length", "")) <= _MOST_LENGTH_DIGITS
    )


def find_response_failure(attempt: FailedHop) -> Failure | None:
    """What is wrong with a response that libcurl takes for one. None: nothing is."""
    seen, head = attempt.seen, attempt.seen.head
    if seen.bad_status_line is not None:
        line = seen.bad_status_line[:_SHOWN_CHARS]
        return attempt.failure(
            FailureKind.PROTOCOL,
            f"{attempt.target} answered with {line!r}, which is no status line of HTTP.",
            "ERR_INVALID_STATUS_LINE",
        )
    if head is None:
        return None
    if head.status_code == _SWITCHING_PROTOCOLS and not attempt.hop.asks_to_upgrade:
        return attempt.failure(
            FailureKind.PROTOCOL,
            f"{attempt.target} answered 101 and switched to another protocol, "
            "which the request did not ask for.",
            "ERR_UPGRADE",
        )
    digits = len(head.headers.get("content-length", "").partition(",")[0].lstrip("0"))
    if digits > _MOST_LENGTH_DIGITS:
        return attempt.failure(
            FailureKind.PROTOCOL,
            f"{attempt.target} announces a Content-Length of {digits} digits; "
            "no body is that long.",
            "ERR_CONTENT_LENGTH",
        )
    if not seen.ended.code:
        return _find_incompleteness(attempt, head)
    return None


def _find_incompleteness(attempt: FailedHop, head: Head) -> Failure | None:
    """Why a response is not whole whose connection ended as if it were. None: it is whole."""
    if not head.is_complete:
        return attempt.failure(
            FailureKind.PROTOCOL,
            f"{attempt.target} closed the connection in the middle of its headers.",
            "ERR_INCOMPLETE_HEADERS",
        )
    if attempt.seen.cut_coding is not None:
        return attempt.failure(
            FailureKind.PROTOCOL,
            f"The body from {attempt.target} ends in the middle of its {attempt.seen.cut_coding} "
            f"stream, after {attempt.seen.body_bytes} decoded bytes.",
            "ERR_INCOMPLETE_BODY",
        )
    return None


def _transfer_coding_failure(attempt: FailedHop) -> Failure:
    unsolicited = _UNSOLICITED.search(attempt.words)
    if unsolicited is None:
        return _protocol_failure(attempt)
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} answered with the transfer coding {unsolicited[1]}, "
        "which the request did not offer.",
        "ERR_TRANSFER_ENCODING",
    )


def _protocol_failure(attempt: FailedHop) -> Failure:
    if not attempt.seen.ended.message and attempt.seen.head is None:
        return no_response_failure(attempt)  # libcurl has no words for an end of HTTP/2 like this
    if _TOO_LARGE_HEADERS.search(attempt.words):  # an error in receiving, to libcurl
        return _large_headers_failure(attempt)
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} did not answer as {_name_version(attempt)} demands: "
        f"{_explain_malformed(attempt)}.",
        "EPROTO",
    )


def _explain_malformed(attempt: FailedHop) -> str:
    words = attempt.words
    if "Invalid Content-Length" in words:
        return _explain_length(attempt.seen.head)
    for said, plain in _MALFORMED:
        if said in words:
            return plain
    if field := _INVALID_FIELD.search(words):
        # Only a status is shown: other values may be secret.
        value = f" {field[2]}" if field[1] == ":status" else ""
        return f"its header field {field[1]}{value} is invalid"
    broken_rule = _BROKEN_RULE.search(words)
    return words if broken_rule is None else broken_rule[1]


def _explain_length(head: Head | None) -> str:
    """What is wrong with a Content-Length, whose line libcurl keeps to itself."""
    first = None if head is None else head.headers.get("content-length")
    if first is None:
        return "its Content-Length is not one whole number of bytes"
    return f"its second Content-Length is not {first[:_SHOWN_CHARS]}, as its first one is"


def _http_2_failure(attempt: FailedHop) -> Failure | None:
    """How the server ended HTTP/2 before its answer did. None: it did not."""
    target, lines = attempt.target, b"".join(attempt.seen.http_2_lines).decode("ascii", "replace")
    if attempt.seen.requires_http_1:
        how = f"{target} requires HTTP/1.1 for this request (HTTP_1_1_REQUIRED)"
    elif (goaway := _GOAWAY.search(lines)) and int(goaway[1]):
        name = _name_http_2_error(int(goaway[1]))
        how = f"{target} ended the connection {_say_when(attempt)}: GOAWAY with {name}"
    elif attempt.seen.refused:
        by_goaway = "GOAWAY with NO_ERROR" if goaway else "REFUSED_STREAM"
        how = f"{target} refused the request and did not process it ({by_goaway})"
    elif reset := _RESET.search(lines):
        name = _name_http_2_error(int(reset[1], 16))
        how = f"{target} reset the stream {_say_when(attempt)}: {name}"
    else:
        return None
    return attempt.failure(FailureKind.PROTOCOL, f"{how}.", "ERR_HTTP2")


def _name_http_2_error(code: int) -> str:
    return _HTTP_2_ERRORS.get(code, f"error {code}")


def _large_headers_failure(attempt: FailedHop) -> Failure:
    """More headers than are read; libcurl has no words for its limit of a line, 100 KiB."""
    if found := _TOO_MANY_HEADERS.search(attempt.words):
        much = f"more than {found[1]} header lines"
    elif found := _TOO_LARGE_HEADERS.search(attempt.words):
        much = f"more than {found[1]} bytes of headers"
    else:
        much = "a header line of 102400 bytes or more"
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} sent {much}, more than is read.",
        "ERR_TOO_LARGE_HEADERS",
    )


def _url_failure(attempt: FailedHop) -> Failure:
    if is_proxy_refusal(attempt):
        return proxy_failure(attempt)
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.hop.url} is not a URL that can be requested: {attempt.words}.",
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
    pycurl.E_GOT_NOTHING: no_response_failure,
    pycurl.E_SEND_ERROR: _receive_failure,
    pycurl.E_RECV_ERROR: _receive_failure,
    pycurl.E_SSL_CERTPROBLEM: _client_certificate_failure,
    pycurl.E_SSL_CIPHER: _handshake_failure,
    pycurl.E_PEER_FAILED_VERIFICATION: _certificate_failure,
    pycurl.E_BAD_CONTENT_ENCODING: _transfer_coding_failure,
    _HTTP2_STREAM: _protocol_failure,
    _HTTP3: _quic_close_failure,
    _QUIC_CONNECT: quic_failure,
    _PROXY: proxy_failure,
    _CLIENT_CERTIFICATE_REQUIRED: _handshake_failure,
    _TOO_LARGE: _large_headers_failure,
}
