"""Requests to the receivers of alerts."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from service.alert_channels.sending.egress import EgressGate, EgressRule
from service.alert_channels.sending.errors import ChannelError, Fault

LIMIT_S: Final = 10.0
"""For a whole exchange, from the look-up of the name to the answer's head."""
_SCHEMES: Final = frozenset({"http", "https"})
_NO_URL: Final = "The channel's URL, with its variables filled in, is no http or https URL."
_USER_AGENT: Final = "picket-alerts"
_FAULTS: Final[Mapping[int, Fault]] = {
    408: Fault.TEMPORARY,
    425: Fault.TEMPORARY,
    429: Fault.RATE_LIMITED,
    502: Fault.TEMPORARY,
    503: Fault.TEMPORARY,
    504: Fault.TEMPORARY,
}
"""Statuses that say nothing about the request; the others refuse it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request to a receiver."""

    url: str = field(repr=False)
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    """None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What of an answer counts; its body is not read, since it may repeat what was sent."""

    status: int
    retry_after_s: float | None
    """None: the receiver says nothing of it."""

    @property
    def phrase(self) -> str:
        """The status with its name."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    def raise_for_status(self, faults: Mapping[int, Fault]) -> None:
        """Refuse what is no success.

        `faults`: what statuses mean to this receiver; the others mean the same to all.

        Raises:
            ChannelError: the receiver did not take it.
        """
        if self.status < HTTPStatus.MULTIPLE_CHOICES:
            return
        if self.status < HTTPStatus.BAD_REQUEST:
            raise ChannelError(
                f"The receiver answered {self.phrase}; redirects are not followed.", Fault.REFUSED
            )
        fault = faults.get(self.status, _FAULTS.get(self.status, Fault.REFUSED))
        raise ChannelError(
            f"The receiver answered {self.phrase}.", fault, retry_after_s=self.retry_after_s
        )


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Sends one request at a time, by a connection of its own.

    Alerts are rare, and a receiver that hangs holds nothing but its own connection.
    """

    egress: EgressRule
    limit_s: float = LIMIT_S

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request; redirects are answers like others.

        Raises:
            ChannelError: there was no answer.
        """
        _require_url(request.url)
        gate = EgressGate(self.egress)
        try:
            return await self._exchange(request, gate)
        except TimeoutError:
            raise ChannelError(f"The receiver did not answer within {self.limit_s:g} s.") from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            # Their own words may repeat the address, which is a secret.
            raise _explain(problem, gate) from None

    async def _exchange(self, request: HttpRequest, gate: EgressGate) -> HttpAnswer:
        connector = aiohttp.TCPConnector(
            force_close=True,
            # The system's own, by which names of a private network are known.
            resolver=aiohttp.ThreadedResolver(),
            use_dns_cache=False,
            socket_factory=gate.open_socket,
        )
        timeout = aiohttp.ClientTimeout(total=self.limit_s)
        headers = {"user-agent": _USER_AGENT, **request.headers}
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
            ) as session,
            session.request(
                request.method,
                request.url,
                headers=headers,
                data=request.body,
                allow_redirects=False,
            ) as answer,
        ):
            retry_after = answer.headers.get("retry-after", "")
            return HttpAnswer(status=answer.status, retry_after_s=_read_wait_s(retry_after))


def _require_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in _SCHEMES and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise ChannelError(_NO_URL, Fault.FINAL)


def _explain(problem: Exception, gate: EgressGate) -> ChannelError:
    if gate.refusal is not None:
        return ChannelError(
            f"The service may not connect to it: {gate.refusal}; ALERT_EGRESS_ALLOW can allow it.",
            Fault.FINAL,
        )
    return _describe(problem)


def _describe(problem: Exception) -> ChannelError:
    if isinstance(problem, aiohttp.InvalidURL):
        return ChannelError(_NO_URL, Fault.FINAL)
    match problem:
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return ChannelError("The receiver's host name cannot be resolved.")
        case aiohttp.ClientSSLError():
            return ChannelError("The receiver's certificate is not trusted, or TLS failed.")
        case aiohttp.ClientConnectorError():
            number = problem.os_error.errno
            reason = os.strerror(number) if number else "no connection"
            return ChannelError(f"The receiver cannot be reached: {reason}.")
        case ValueError():
            return ChannelError(
                "The channel's request, with its variables filled in, cannot be sent:"
                " a header or the URL has a character that is not allowed there.",
                Fault.FINAL,
            )
        case _:
            return ChannelError("The connection to the receiver broke before it answered.")


def _read_wait_s(text: str) -> float | None:
    """What `Retry-After` demands: seconds, or a date (RFC 9110, 10.2.3)."""
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
