"""The client of the service's agent API."""

import asyncio
import os
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from agent.api_client.errors import (
    ElsewhereError,
    JobGoneError,
    KeyRefusedError,
    LinkedError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
    StoreError,
    VersionRefusedError,
)
from agent.api_client.outage import Outage
from agent.api_client.proxies import Proxy
from agent.lifecycle import Lifecycle
from agent.telemetry.metrics import Metrics
from contract import agent_api as api
from contract.job import Lease
from contract.result import Artifact
from contract.wire import UnreadableMessageError, decode, encode

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

_REFUSALS: Final[dict[int, type[ServiceError]]] = {
    401: KeyRefusedError,
    426: VersionRefusedError,
    400: RequestRefusedError,
    413: RequestRefusedError,
    422: RequestRefusedError,
}
"""Statuses that will not pass by themselves; with every other one the service counts as away."""


class Response(NamedTuple):
    """An HTTP answer of the service."""

    status: int
    body: bytes
    retry_after: str
    """Empty: there was no such header."""
    location: str = ""
    """Where else the answer is. Empty: there was no such header."""


def map_refusal(answer: Response, sentence: str) -> ServiceError | None:
    """The error for a status that will not pass by itself. None: it may pass."""
    refusal = _REFUSALS.get(answer.status)
    return None if refusal is None else refusal(sentence)


def map_artifact_refusal(answer: Response, sentence: str) -> ServiceError | None:
    """What will not pass by itself when a file is uploaded; a proxy's 404 or 416 may pass."""
    with suppress(UnreadableMessageError):
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            offset = decode(answer.body, api.RangeRefusal).attributes.offset
            return ElsewhereError(sentence, offset=offset)
        if answer.status == HTTPStatus.NOT_FOUND:
            return JobGoneError(decode(answer.body, api.Refusal).message)
    return map_refusal(answer, sentence)


def map_bundle_refusal(answer: Response, sentence: str) -> ServiceError | None:
    """What will not pass by itself when a code bundle is fetched: a missing one stays missing."""
    if answer.status == HTTPStatus.TEMPORARY_REDIRECT and answer.location:
        return LinkedError(answer.location)
    if answer.status == HTTPStatus.NOT_FOUND:
        return RequestRefusedError(sentence)
    return map_refusal(answer, sentence)


def map_link_refusal(answer: Response, sentence: str) -> ServiceError | None:
    """An older service knows no links; whatever is wrong shows when it gets the file itself."""
    if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
        return RequestRefusedError(sentence)
    return map_refusal(answer, sentence)


Refusal = Callable[[Response, str], ServiceError | None]


def read(answer: Response, kind: type[MessageT], refusal: Refusal) -> MessageT:
    """The message of an answer.

    Raises:
        ServiceError: as `refusal` says, or the service counts as away.
    """
    if answer.status in {200, 201, 202, 204}:
        try:
            return decode(answer.body or b"{}", kind)
        except UnreadableMessageError as problem:
            raise ServiceAwayError(
                f"The service's answer cannot be read, so something else may answer at "
                f"SERVICE_URL: {problem}",
                is_unreachable=True,
            ) from problem
    message = _read_message(answer.body)
    said = message or answer.body[:200].decode("utf-8", "replace").strip() or "nothing more"
    sentence = f"The service answered {answer.status}: {said}"
    if (refused := refusal(answer, sentence)) is not None:
        raise refused
    raise ServiceAwayError(
        sentence,
        retry_after_s=_parse_seconds(answer.retry_after),
        is_unreachable=message is None,
    )


def _read_message(answer: bytes) -> str | None:
    """What the service says. None: the answer is somebody else's, such as a proxy's."""
    try:
        return decode(answer, api.Refusal).message
    except UnreadableMessageError:
        return None


def _parse_seconds(retry_after: str) -> float | None:
    """The header's seconds. None: it is not there, or is a date, which needs equal clocks."""
    return float(retry_after) if retry_after.isdecimal() else None


CONNECT_LIMIT_S: Final = 10.0
QUICK_LIMIT_S: Final = 15.0
SUBMIT_LIMIT_S: Final = 60.0
BUNDLE_LIMIT_S: Final = 600.0
STORE_LIMIT_S: Final = 600.0
_PART_BYTES: Final = 1024 * 1024
_GZIP_LEVEL: Final = 1
"""Level 6 costs four times the CPU for a tenth fewer bytes."""
_GZIP_IN_THREAD_BYTES: Final = 512 * 1024
_GZIP_WINDOW: Final = 31


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an artifact, as it is uploaded."""

    lease: Lease
    artifact: Artifact
    first: int
    """Where it begins in the file, in bytes."""
    content: bytes


class Nothing(msgspec.Struct):
    """The empty answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEndpoint:
    """The service's address, and what its requests need."""

    url: str
    api_key: str = field(repr=False)
    agent_id: str
    version: str
    proxy: Proxy | None = None
    """None: direct."""
    compresses: bool = True
    """Whether large bodies are sent as gzip."""

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
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
        endpoint: ServiceEndpoint,
        session: aiohttp.ClientSession,
        *,
        lifecycle: Lifecycle,
        metrics: Metrics,
    ) -> None:
        self._endpoint = endpoint
        self._session = session
        self._lifecycle = lifecycle
        self._metrics = metrics
        self.outage = Outage()
        """What the loops that use this client wait by."""
        self._headers = endpoint.headers()
        self._proxy = None if endpoint.proxy is None else endpoint.proxy.url
        self._proxy_headers = _proxy_headers(endpoint.proxy)

    def __repr__(self) -> str:
        return f"ServiceClient({self._endpoint.url})"

    async def hello(self, hello: api.Hello) -> api.HelloAnswer:
        """Introduce this agent."""
        return await self._post(api.HELLO, encode(hello), api.HelloAnswer)

    async def claim(self, claim: api.Claim) -> api.ClaimAnswer:
        """Ask for jobs, and wait for them as long as the claim says."""
        limit_s = claim.wait_s + QUICK_LIMIT_S
        return await self._post(api.CLAIM, encode(claim), api.ClaimAnswer, limit_s=limit_s)

    async def renew(self, leases: Sequence[Lease], *, is_complete: bool = False) -> api.RenewAnswer:
        """Keep leases."""
        body = encode(api.Renew(leases=tuple(leases), is_complete=is_complete))
        return await self._post(api.RENEW, body, api.RenewAnswer)

    async def release(self, jobs: Sequence[api.Released]) -> None:
        """Give jobs back."""
        await self._post(api.RELEASE, encode(api.Release(jobs=tuple(jobs))), Nothing)

    async def submit(self, results: Sequence[bytes]) -> api.SubmissionAnswer:
        """Hand over results, each already encoded."""
        body = b'{"results":[' + b",".join(results) + b"]}"
        return await self._post(api.RESULTS, body, api.SubmissionAnswer, limit_s=SUBMIT_LIMIT_S)

    async def relay_pings(self, pings: api.Pings) -> None:
        """Pass heartbeat pings on."""
        await self._post(api.PINGS, encode(pings), Nothing)

    async def send_events(self, events: api.Events) -> None:
        """Report errors of this agent."""
        await self._post(api.EVENTS, encode(events), Nothing)

    async def put_artifact(self, chunk: Chunk) -> api.ArtifactStored:
        """Upload a part of a file.

        Raises:
            ElsewhereError: it begins elsewhere than where the stored bytes end.
            JobGoneError: the service expects no files of this job any more.
            RequestRefusedError: the service will never take this file.
            ServiceError: it did not arrive.
        """
        name = f"{quote(chunk.lease.job_id, safe='')}/{chunk.artifact.name}"
        call = _Call(
            "artifacts",
            f"{api.ARTIFACTS}/{name}",
            method="PUT",
            headers=_build_headers(chunk),
            compresses=False,
            refusal=map_artifact_refusal,
        )
        return await self._exchange(call, chunk.content, api.ArtifactStored, SUBMIT_LIMIT_S)

    async def link_artifact(self, lease: Lease, artifact: Artifact) -> api.ArtifactLink:
        """Ask for a link by which a file goes straight to the service's store.

        Raises:
            RequestRefusedError: there is none for this file.
            ServiceError: the service did not answer.
        """
        call = _call_about(lease, artifact, "link", map_link_refusal)
        return await self._exchange(call, b"", api.ArtifactLink, QUICK_LIMIT_S)

    async def confirm_artifact(self, lease: Lease, artifact: Artifact) -> api.ArtifactStored:
        """Have the service look at a file that was put into its store.

        Raises:
            JobGoneError: the service expects no files of this job any more.
            RequestRefusedError: it is not there, or another one.
            ServiceError: the service did not answer.
        """
        call = _call_about(lease, artifact, "stored", map_artifact_refusal)
        return await self._exchange(call, b"", api.ArtifactStored, SUBMIT_LIMIT_S)

    async def put_by_link(
        self,
        url: str,
        content: AsyncIterator[bytes],
        *,
        headers: Mapping[str, str],
        size_bytes: int,
    ) -> None:
        """Put a file where a link says, with the headers that go with it and without our key.

        Raises:
            StoreError: it did not arrive.
        """
        sent = {**headers, "content-length": str(size_bytes)}
        await self._ask_store("PUT", url, headers=sent, data=content)

    async def get_bundle(
        self, sha256: str, take: Callable[[bytes], object], *, takes_links: bool = False
    ) -> None:
        """Fetch a code bundle, handed over part by part.

        `takes_links`: from the service's store, if the service names a link.

        Raises:
            RequestRefusedError: no check of this location runs it.
            StoreError: the link does not work.
            ServiceError: it did not arrive, or not as a whole.
        """
        call = _Call(
            "bundles",
            f"{api.BUNDLES}/{quote(sha256, safe='')}",
            method="GET",
            headers={api.LINKS_HEADER: "1"} if takes_links else {},
            refusal=map_bundle_refusal,
            take=take,
        )
        try:
            await self._exchange(call, b"", Nothing, BUNDLE_LIMIT_S)
        except LinkedError as elsewhere:
            self._lifecycle.service_answered()
            self.outage.answered(call.name)
            await self._ask_store("GET", elsewhere.url, take=take)

    async def _ask_store(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: AsyncIterator[bytes] | None = None,
        take: Callable[[bytes], object] | None = None,
    ) -> None:
        """By the proxy of the service's address; the link is a secret while it is valid."""
        try:
            async with self._session.request(
                method,
                url,
                data=data,
                headers=headers,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=STORE_LIMIT_S, sock_connect=CONNECT_LIMIT_S),
            ) as answer:
                await _read_content(answer, take)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            self._metrics.service_request("store", _name_failure(problem))
            reason = (
                "no answer in time"
                if isinstance(problem, TimeoutError)
                else describe_connection_error(problem)
            )
            raise StoreError(f"The service's file store cannot be reached: {reason}.") from None
        self._metrics.service_request("store", str(answer.status))
        if answer.status not in {200, 201, 204}:
            raise StoreError(f"The service's file store answered {answer.status}.")

    async def _post(
        self, path: str, body: bytes, kind: type[MessageT], *, limit_s: float = QUICK_LIMIT_S
    ) -> MessageT:
        return await self._exchange(_Call(path.rsplit("/", 1)[1], path), body, kind, limit_s)

    async def _exchange(
        self, call: "_Call", body: bytes, kind: type[MessageT], limit_s: float
    ) -> MessageT:
        try:
            found = read(await self._send(call, body, limit_s=limit_s), kind, call.refusal)
        except (KeyRefusedError, VersionRefusedError) as problem:
            self._lifecycle.service_refused(str(problem))
            self.outage.refused(call.name, str(problem))
            raise
        except ServiceAwayError as problem:
            self._lifecycle.service_away()
            self.outage.failed(call.name, problem)
            raise
        self._lifecycle.service_answered()
        self.outage.answered(call.name)
        return found

    async def _send(self, call: "_Call", body: bytes, *, limit_s: float) -> Response:
        headers = {**self._headers, **call.headers} if call.headers else self._headers
        if self._endpoint.compresses and call.compresses and len(body) > api.GZIP_ABOVE_BYTES:
            body = await _compress(body)
            headers = {**headers, "content-encoding": "gzip"}
        try:
            async with self._session.request(
                call.method,
                self._endpoint.url + call.path,
                data=body,
                headers=headers,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=limit_s, sock_connect=CONNECT_LIMIT_S),
            ) as answer:
                content = await _read_content(answer, call.take)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            self._metrics.service_request(call.name, _name_failure(problem))
            # No cause: aiohttp's errors hold the request's headers, and so the key.
            sentence = _describe_failure(self._endpoint, problem)
            raise ServiceAwayError(sentence, is_unreachable=True) from None
        self._metrics.service_request(call.name, str(answer.status))
        found = answer.headers
        return Response(
            answer.status, content, found.get("retry-after", ""), found.get("location", "")
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """How one call of the API is made."""

    name: str
    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers beside those of every request."""
    compresses: bool = True
    refusal: Refusal = map_refusal
    take: Callable[[bytes], object] | None = None
    """Gets the parts of an answer that is a file; it may block. None: it is a message."""


async def _read_content(
    answer: aiohttp.ClientResponse, take: Callable[[bytes], object] | None
) -> bytes:
    """The message of an answer; empty where a file was handed over."""
    if take is None or answer.status != HTTPStatus.OK:
        return await answer.read()
    async for part in answer.content.iter_chunked(_PART_BYTES):
        await asyncio.to_thread(take, part)
    return b""


def _call_about(lease: Lease, artifact: Artifact, what: str, refusal: Refusal) -> _Call:
    return _Call(
        "artifacts",
        f"{api.ARTIFACTS}/{quote(lease.job_id, safe='')}/{artifact.name}/{what}",
        headers={
            api.ARTIFACT_FENCE_HEADER: str(lease.fence),
            api.ARTIFACT_DIGEST_HEADER: artifact.sha256,
            api.ARTIFACT_SIZE_HEADER: str(artifact.size_bytes),
        },
        refusal=refusal,
    )


def _build_headers(chunk: Chunk) -> dict[str, str]:
    artifact, end = chunk.artifact, chunk.first + len(chunk.content)
    headers = {
        "content-type": artifact.content_type,
        api.ARTIFACT_FENCE_HEADER: str(chunk.lease.fence),
        api.ARTIFACT_DIGEST_HEADER: artifact.sha256,
    }
    if artifact.size_bytes:  # an empty file has no range
        headers["content-range"] = f"bytes {chunk.first}-{end - 1}/{artifact.size_bytes}"
    return headers


def _name_failure(problem: Exception) -> str:
    return "timeout" if isinstance(problem, TimeoutError) else "unreachable"


def _describe_failure(endpoint: ServiceEndpoint, problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return f"{endpoint.url} did not answer in time."
    if isinstance(problem, aiohttp.ClientResponseError):
        return f"The proxy for {endpoint.url} answered {problem.status}."
    return f"{endpoint.url} cannot be reached: {describe_connection_error(problem)}."


async def _compress(body: bytes) -> bytes:
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


def describe_connection_error(problem: BaseException) -> str:
    """The end of a sentence, without its full stop."""
    match problem:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLError():
            pass
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return "its name cannot be looked up"
        case aiohttp.ClientConnectorError() if not isinstance(problem.os_error, ssl.SSLError):
            return describe_connection_error(problem.os_error)
        case OSError() if problem.errno and problem.errno > 0:
            return os.strerror(problem.errno).lower()
        case _:
            pass
    return str(problem) or type(problem).__name__
