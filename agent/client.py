"""The agent's calls to its service: typed, authorised, and each failure mapped by one table."""

import asyncio
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

import aiohttp
import msgspec

from agent.errors import (
    KeyRefusedError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
    VersionRefusedError,
)
from agent.proxies import Proxy
from contract import agent_api as api
from contract.job import Lease
from contract.wire import UnreadableMessageError, decode, encode

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

CONNECT_LIMIT_S: Final = 10.0
QUICK_LIMIT_S: Final = 15.0
SUBMIT_LIMIT_S: Final = 60.0
_GZIP_LEVEL: Final = 1
"""Level 6 costs four times the CPU for a tenth fewer bytes."""
_GZIP_IN_THREAD_BYTES: Final = 512 * 1024
_GZIP_WINDOW: Final = 31

_REFUSALS: Final[dict[int, type[ServiceError]]] = {
    401: KeyRefusedError,
    426: VersionRefusedError,
    400: RequestRefusedError,
    413: RequestRefusedError,
    422: RequestRefusedError,
}
"""Statuses that will not pass by themselves; with every other one the service counts as away."""


class Contact(Protocol):
    """Whoever wants to know how the agent stands with its service."""

    def service_answered(self) -> None:
        """It took a request."""

    def service_away(self) -> None:
        """It could not be reached, or could not serve us."""

    def service_refused(self, because: str) -> None:
        """It refuses our key or our version."""


class RequestMeter(Protocol):
    """Where requests are counted."""

    def service_request(self, call: str, status: str) -> None:
        """One request ended with this HTTP status, or a word when there was no answer."""


class Nothing(msgspec.Struct):
    """The answer of calls that answer nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where the service is and how to get in."""

    url: str
    api_key: str = field(repr=False)
    agent_id: str
    version: str
    proxy: Proxy | None = None
    """None: direct."""
    compresses: bool = True
    """Whether large bodies are sent as gzip."""

    def headers(self) -> dict[str, str]:
        """What stands on every request."""
        return {
            "authorization": f"Bearer {self.api_key}",
            "user-agent": f"{api.USER_AGENT_PREFIX}{self.version}",
            api.AGENT_ID_HEADER: self.agent_id,
            "content-type": "application/json",
        }


class ServiceClient:
    """One method per call of the agent API; each raises a `ServiceError` when it fails."""

    def __init__(
        self,
        door: Door,
        session: aiohttp.ClientSession,
        *,
        contact: Contact,
        meter: RequestMeter,
    ) -> None:
        self._door = door
        self._session = session
        self._contact = contact
        self._meter = meter
        self._headers = door.headers()
        self._proxy = None if door.proxy is None else door.proxy.url
        self._proxy_headers = _proxy_headers(door.proxy)

    def __repr__(self) -> str:
        return f"ServiceClient({self._door.url})"

    async def hello(self, hello: api.Hello) -> api.HelloAnswer:
        """Introduce this agent."""
        return await self._ask(api.HELLO, encode(hello), api.HelloAnswer)

    async def claim(self, claim: api.Claim) -> api.ClaimAnswer:
        """Ask for jobs, and wait for them as long as the claim says."""
        limit_s = claim.wait_s + QUICK_LIMIT_S
        return await self._ask(api.CLAIM, encode(claim), api.ClaimAnswer, limit_s=limit_s)

    async def renew(self, leases: Sequence[Lease]) -> api.RenewAnswer:
        """Keep leases."""
        body = encode(api.Renew(leases=tuple(leases)))
        return await self._ask(api.RENEW, body, api.RenewAnswer)

    async def release(self, jobs: Sequence[api.Released]) -> None:
        """Give jobs back."""
        await self._ask(api.RELEASE, encode(api.Release(jobs=tuple(jobs))), Nothing)

    async def submit(self, results: Sequence[bytes]) -> api.SubmissionAnswer:
        """Hand over results, each already encoded."""
        body = b'{"results":[' + b",".join(results) + b"]}"
        return await self._ask(api.RESULTS, body, api.SubmissionAnswer, limit_s=SUBMIT_LIMIT_S)

    async def relay_pings(self, pings: api.Pings) -> None:
        """Pass heartbeat pings on."""
        await self._ask(api.PINGS, encode(pings), Nothing)

    async def send_events(self, events: api.Events) -> None:
        """Report errors of this agent."""
        await self._ask(api.EVENTS, encode(events), Nothing)

    async def _ask(
        self, path: str, body: bytes, kind: type[MessageT], *, limit_s: float = QUICK_LIMIT_S
    ) -> MessageT:
        try:
            status, answer, retry_after = await self._post(path, body, limit_s=limit_s)
            found = _read(status, answer, kind, retry_after=retry_after)
        except (KeyRefusedError, VersionRefusedError) as problem:
            self._contact.service_refused(str(problem))
            raise
        except ServiceAwayError:
            self._contact.service_away()
            raise
        self._contact.service_answered()
        return found

    async def _post(self, path: str, body: bytes, *, limit_s: float) -> tuple[int, bytes, str]:
        call = path.rsplit("/", 1)[1]
        headers = self._headers
        if self._door.compresses and len(body) > api.GZIP_ABOVE_BYTES:
            body = await _gzipped(body)
            headers = {**headers, "content-encoding": "gzip"}
        try:
            async with self._session.post(
                self._door.url + path,
                data=body,
                headers=headers,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=limit_s, sock_connect=CONNECT_LIMIT_S),
            ) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            self._meter.service_request(call, _word_for(problem))
            # No cause: aiohttp's errors hold the request's headers, and so the key.
            raise ServiceAwayError(_unreachable(self._door, problem)) from None
        self._meter.service_request(call, str(answer.status))
        return answer.status, content, answer.headers.get("retry-after", "")


def _read(status: int, answer: bytes, kind: type[MessageT], *, retry_after: str) -> MessageT:
    if status in {200, 201, 202, 204}:
        try:
            return decode(answer or b"{}", kind)
        except UnreadableMessageError as problem:
            raise ServiceAwayError(
                f"The service's answer cannot be read, so something else may answer at "
                f"SERVICE_URL: {problem}"
            ) from problem
    sentence = f"The service answered {status}: {_said(answer)}"
    if status in _REFUSALS:
        raise _REFUSALS[status](sentence)
    raise ServiceAwayError(sentence, retry_after_s=_seconds(retry_after))


def _said(answer: bytes) -> str:
    try:
        return decode(answer, api.Refusal).message
    except UnreadableMessageError:
        return answer[:200].decode("utf-8", "replace").strip() or "nothing more"


def _seconds(retry_after: str) -> float | None:
    """The header's seconds. None: it is not there, or is a date, which needs equal clocks."""
    return float(retry_after) if retry_after.isdecimal() else None


def _word_for(problem: Exception) -> str:
    return "timeout" if isinstance(problem, TimeoutError) else "unreachable"


def _unreachable(door: Door, problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return f"{door.url} did not answer in time."
    if isinstance(problem, aiohttp.ClientResponseError):
        return f"The proxy for {door.url} answered {problem.status}."
    return f"{door.url} cannot be reached: {str(problem) or type(problem).__name__}."


async def _gzipped(body: bytes) -> bytes:
    if len(body) > _GZIP_IN_THREAD_BYTES:
        return await asyncio.to_thread(_gzip, body)
    return _gzip(body)


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, _GZIP_LEVEL, wbits=_GZIP_WINDOW)


def _proxy_headers(proxy: Proxy | None) -> dict[str, str] | None:
    """The credentials for the proxy, which aiohttp turns into `proxy-authorization`. None: none."""
    if proxy is None or proxy.username is None:
        return None
    credentials = f"{proxy.username}:{proxy.password}".encode()
    return {"authorization": f"Basic {b64encode(credentials).decode()}"}
