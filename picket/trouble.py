"""What went wrong on the way to another program, in words, and what to do about it."""

import errno
import os
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import aiohttp

from runners.kit.tls.words import WRONG_HOST, certificate_fault, handshake_fault

_START: Final = "start the service, or check SERVICE_URL, firewall and proxy"
_PROXY: Final = "check HTTPS_PROXY and HTTP_PROXY"
_LOOK_UP: Final = "check the name and the DNS"
_WORDS: Final = {
    errno.ECONNREFUSED: "connection refused: nothing listens there",
    errno.ECONNRESET: "it closed the connection without an answer",
    errno.EPIPE: "it closed the connection without an answer",
    errno.ETIMEDOUT: "no answer in time",
    errno.EHOSTUNREACH: "no route leads to that host",
    errno.ENETUNREACH: "no route leads to that network",
}
_CLOSED: Final = frozenset({errno.ECONNRESET, errno.EPIPE})
_STRANGER: Final = "nobody whom this host trusts has signed it"

# OpenSSL's verify results.
_OUT_OF_TIME: Final = frozenset({9, 10})
_SELF_SIGNED: Final = 18
_STRANGERS: Final = frozenset({2, 19, 20, 21, 27})
_WRONG_NAME: Final = frozenset({WRONG_HOST, 63, 64})


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a service or a proxy cannot be reached."""

    seen: str
    fix: str


def trouble_with(problem: BaseException, url: str) -> Trouble:
    """The trouble, in words that say nothing of keys: an error may hold the request's headers."""
    match problem:
        case aiohttp.ClientResponseError():
            trouble = Trouble(f"the proxy answered {problem.status}", _PROXY)
        case aiohttp.ClientProxyConnectionError():
            seen = trouble_with(problem.os_error, url).seen
            trouble = Trouble(f"the proxy before it cannot be reached ({seen})", _PROXY)
        case aiohttp.ClientConnectorCertificateError():
            trouble = _certificate(problem.certificate_error)
        case aiohttp.ClientConnectorDNSError():
            trouble = Trouble(f"the name {problem.host} cannot be looked up", _LOOK_UP)
        case aiohttp.ClientConnectorError():
            trouble = trouble_with(problem.os_error, url)
        case ssl.SSLError():
            trouble = _handshake(problem)
        case aiohttp.ServerDisconnectedError():
            trouble = _system(ConnectionResetError(errno.ECONNRESET, ""), url)
        case OSError():
            trouble = _system(problem, url)
        case _:
            trouble = Trouble(str(problem) or type(problem).__name__, _START)
    return trouble


def _system(problem: OSError, url: str) -> Trouble:
    if isinstance(problem, socket.gaierror):
        return Trouble("its name cannot be looked up", _LOOK_UP)
    if isinstance(problem, TimeoutError):
        return Trouble("no answer in time", _START)
    if problem.errno in _CLOSED and url.startswith("http://"):
        fix = "check what listens there; if it speaks TLS, use https:// in SERVICE_URL"
        return Trouble(_WORDS[errno.ECONNRESET], fix)
    number = problem.errno or 0
    words = _WORDS.get(number) or (os.strerror(number).lower() if number > 0 else str(problem))
    return Trouble(words, _START)


def _handshake(problem: ssl.SSLError) -> Trouble:
    why = handshake_fault(problem.reason or str(problem))
    fix = "check SERVICE_URL; a service without TLS has http:// there"
    return Trouble(f"it did not agree on TLS: {why}", fix)


def _certificate(problem: Exception) -> Trouble:
    code = getattr(problem, "verify_code", 0)
    said = str(getattr(problem, "verify_message", "") or problem).rstrip(".")
    words = _STRANGER if code in _STRANGERS else said
    why = certificate_fault(code, (), host="", now=datetime.now(UTC), words=words)
    return Trouble(f"its certificate cannot be trusted: {why}", _certificate_mend(code))


def _certificate_mend(code: int) -> str:
    if code in _WRONG_NAME:
        return "use an address in SERVICE_URL that the certificate speaks for"
    if code in _OUT_OF_TIME:
        return "renew the certificate, and look at both hosts' clocks"
    if code == _SELF_SIGNED:
        return "copy the certificate to this host and name the file in EXTRA_CA_CERTS"
    return "name a file with the certificate of its authority in EXTRA_CA_CERTS"
