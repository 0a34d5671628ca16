"""libcurl's errors as failures of the target, by a table. Pure."""

import errno
import os
import re
from collections.abc import Callable
from typing import Final

import pycurl

from contract.requests import HttpVersion
from contract.result import Failure, FailureKind
from runners.kit.http.attempt import Attempt
from runners.kit.http.connecting import (
    no_quic,
    not_connected,
    proxy_failed,
    proxy_unresolved,
    refused_by_proxy,
    unresolved,
)
from runners.kit.http.tls import verify_error
from runners.kit.tls.words import handshake_fault

_OUR_ERRNOS: Final = frozenset(
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


def failure_of(attempt: Attempt) -> Failure:
    """What to say of a transfer that did not end well.

    Raises:
        OSError: we are out of descriptors, ports or memory.
        EngineError: libcurl failed by itself.
    """
    seen = attempt.seen
    if seen.errno in _OUR_ERRNOS:
        raise OSError(seen.errno, os.strerror(seen.errno))
    if seen.refusal is not None:
        return attempt.failure(FailureKind.EGRESS, seen.refusal, "EGRESS_REFUSED")
    say = _TABLE.get(seen.ended.code)
    if say is None:
        raise EngineError(f"libcurl ended with code {seen.ended.code}: {seen.ended.message}")
    return say(attempt)


def _timed_out(attempt: Attempt) -> Failure:
    limit = f"within {attempt.timeout_s:g} s"
    phase, sentence = _hung_in(attempt)
    return attempt.failure(
        FailureKind.TIMEOUT, sentence.format(limit=limit), "ETIMEDOUT", phase=phase
    )


def _hung_in(attempt: Attempt) -> tuple[str, str]:
    """The phase that did not end, and its sentence."""
    ticks, origin, target = attempt.seen.ticks, attempt.hop.origin, attempt.target
    if not ticks.dns:
        return "dns", f"The name {origin.host} was not resolved {{limit}}."
    if not ticks.tcp:
        if attempt.hop.http_version is HttpVersion.HTTP_3:
            return "tcp", f"Nothing answered HTTP/3 (QUIC over UDP) at {target} {{limit}}."
        return "tcp", f"No connection to {target} {{limit}}."
    if origin.scheme == "https" and not ticks.tls:
        return "tls", f"No TLS handshake with {target} {{limit}}."
    if attempt.seen.head is None or not ticks.first_byte:
        return "firstByte", f"No first byte from {target} {{limit}}."
    return "download", (
        f"The body from {target} stalled after {attempt.seen.body_bytes} bytes; "
        "it was not complete {limit}."
    )


def _bad_certificate(attempt: Attempt) -> Failure:
    why = verify_error(attempt.seen, host=attempt.hop.origin.host, now=attempt.now)
    return attempt.failure(
        FailureKind.TLS,
        f"The certificate of {attempt.target} cannot be trusted: {why}.",
        "CERT_INVALID",
        verifyCode=attempt.seen.verify_result,
    )


def _no_handshake(attempt: Attempt) -> Failure:
    fault = handshake_fault(attempt.words)
    if (
        "no application protocol" in attempt.words
        and attempt.hop.http_version is HttpVersion.HTTP_2
    ):
        fault = "it does not offer HTTP/2"
    return attempt.failure(
        FailureKind.TLS, f"{attempt.target} did not agree on TLS: {fault}.", "EPROTO"
    )


def _bad_client_certificate(attempt: Attempt) -> Failure:
    return attempt.failure(
        FailureKind.TLS,
        f"The client certificate for {attempt.hop.origin.host} cannot be used: {attempt.words}.",
        "ERR_CLIENT_CERTIFICATE",
    )


def _no_answer(attempt: Attempt) -> Failure:
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection without an answer.",
        "ECONNRESET",
    )


def _broken_off(attempt: Attempt) -> Failure:
    read = attempt.seen.body_bytes
    announced = attempt.seen.head.headers.get("content-length") if attempt.seen.head else None
    of = f" of {announced}" if announced else ""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection in the middle of the body, "
        f"after {read}{of} bytes.",
        "ERR_INCOMPLETE_BODY",
    )


def _receive_failed(attempt: Attempt) -> Failure:
    words = attempt.words
    if refused_by_proxy(attempt):
        return proxy_failed(attempt)
    if attempt.hop.http_version is HttpVersion.HTTP_3:
        return _quic_ended(attempt)
    if attempt.seen.wants_certificate and attempt.seen.head is None and "alert" not in words:
        return _uncertified(attempt)
    if "reset by peer" in words.lower():
        where = _where(attempt)
        return attempt.failure(
            FailureKind.CONNECT, f"{attempt.target} reset the connection {where}.", "ECONNRESET"
        )
    if "alert" in words or "SSL" in words:
        return attempt.failure(
            FailureKind.TLS,
            f"{attempt.target} broke off TLS: {handshake_fault(words)}.",
            "EPROTO",
        )
    return _broken_protocol(attempt)


def _uncertified(attempt: Attempt) -> Failure:
    """With TLS 1.3 a server's refusal comes when we speak already, and its reason may be lost."""
    return attempt.failure(
        FailureKind.TLS,
        f"{attempt.target} broke off TLS: it asked for a client certificate, and closed the "
        "connection instead of an answer.",
        "EPROTO",
    )


def _quic_ended(attempt: Attempt) -> Failure:
    """A QUIC connection that its peer closed, or that broke."""
    if not attempt.seen.ticks.tls:
        return no_quic(attempt) if attempt.proxy is None else proxy_failed(attempt)
    if not _CLOSED_BY_PEER.search(attempt.words):
        return _broken_protocol(attempt)
    return _no_answer(attempt) if attempt.seen.head is None else _broken_off(attempt)


def _where(attempt: Attempt) -> str:
    if attempt.seen.head is None:
        return "before it answered"
    return f"in the middle of the body, after {attempt.seen.body_bytes} bytes"


def _bad_encoding(attempt: Attempt) -> Failure:
    head = attempt.seen.head
    encoding = head.headers.get("content-encoding", "") if head else ""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"The body from {attempt.target} says it is encoded as {encoding} and cannot be "
        f"decoded: {attempt.words}.",
        "ERR_CONTENT_ENCODING",
    )


def _broken_protocol(attempt: Attempt) -> Failure:
    words = attempt.words
    if "HTTP/0.9" in words:
        words = "what it sent is no HTTP"
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} did not answer as {_version(attempt)} demands: {words}.",
        "EPROTO",
    )


def _too_large(attempt: Attempt) -> Failure:
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} sent more headers than are read.",
        "ERR_TOO_LARGE_HEADERS",
    )


def _bad_url(attempt: Attempt) -> Failure:
    if refused_by_proxy(attempt):
        return proxy_failed(attempt)
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.hop.url} is no URL that can be asked: {attempt.words}.",
        "ERR_INVALID_URL",
    )


def _version(attempt: Attempt) -> str:
    names = {HttpVersion.HTTP_2: "HTTP/2", HttpVersion.HTTP_3: "HTTP/3"}
    return names.get(attempt.hop.http_version, "HTTP")


_TABLE: Final[dict[int, Callable[[Attempt], Failure]]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: _broken_protocol,
    pycurl.E_URL_MALFORMAT: _bad_url,
    pycurl.E_COULDNT_RESOLVE_PROXY: proxy_unresolved,
    pycurl.E_COULDNT_RESOLVE_HOST: unresolved,
    pycurl.E_COULDNT_CONNECT: not_connected,
    _WEIRD_SERVER_REPLY: _broken_protocol,
    pycurl.E_HTTP2: _broken_protocol,
    pycurl.E_PARTIAL_FILE: _broken_off,
    pycurl.E_OPERATION_TIMEDOUT: _timed_out,
    pycurl.E_SSL_CONNECT_ERROR: _no_handshake,
    pycurl.E_GOT_NOTHING: _no_answer,
    pycurl.E_SEND_ERROR: _receive_failed,
    pycurl.E_RECV_ERROR: _receive_failed,
    pycurl.E_SSL_CERTPROBLEM: _bad_client_certificate,
    pycurl.E_SSL_CIPHER: _no_handshake,
    pycurl.E_PEER_FAILED_VERIFICATION: _bad_certificate,
    pycurl.E_BAD_CONTENT_ENCODING: _bad_encoding,
    _HTTP2_STREAM: _broken_protocol,
    _HTTP3: _quic_ended,
    _QUIC_CONNECT: no_quic,
    _PROXY: proxy_failed,
    _CLIENT_CERTIFICATE_REQUIRED: _no_handshake,
    _TOO_LARGE: _too_large,
}
