"""The public API as commands use it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from contract.checks import CheckType
from picket.errors import CommandError, ExitCode

_LIMIT = aiohttp.ClientTimeout(total=30)
"""Longer than a busy host stands still; a service that is gone refuses at once."""
_UPLOAD_LIMIT: Final = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=120)
_PAGE: Final = 100
_MOST_PAGES: Final = 1000


class ApiRefusedError(CommandError):
    """The API answered, but not with what was asked for."""

    def __init__(self, call: str, status: int, message: str, body: Any = None) -> None:
        super().__init__(f"{call} returned {status}: {message}", ExitCode.OWN_FAULT)
        self.status = status
        self.reason = message
        """What the API says, without the call."""
        self.body = body
        """The answer, if it is JSON."""


class ApiUnreachableError(CommandError):
    """Nobody answered."""

    def __init__(self, url: str, problem: Exception) -> None:
        because = str(problem) or type(problem).__name__
        super().__init__(f"the service at {url} does not answer: {because}", ExitCode.OWN_FAULT)


@dataclass(frozen=True, slots=True)
class KnownCheck:
    """A check that the service has."""

    id: str
    name: str
    kind: CheckType
    fields: dict[str, Any]
    """The whole answer."""


class PublicApi:
    """A client of the public API; obeys its rate limit."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self._session = aiohttp.ClientSession(
            timeout=_LIMIT, headers={"authorization": f"Bearer {key}"}
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def locations(self, *, versions: bool = False) -> list[dict[str, Any]]:
        """The private locations; with `versions`, also their agents."""
        query = {"versions": "true"} if versions else {}
        found: list[dict[str, Any]] = await self.ask("GET", "/v1/private-locations", query=query)
        return found

    async def checks(self, *, tag: str | None = None) -> list[KnownCheck]:
        """All checks of the types that we know, or those with the tag."""
        entries = await self.every("/v1/checks", {"tag": tag} if tag else {})
        return [_known(entry) for entry in entries]

    async def create(self, kind: CheckType, body: dict[str, Any]) -> KnownCheck:
        """Create a check."""
        return _known(await self.ask("POST", f"/v1/checks/{kind.path_segment}", body=body))

    async def replace(self, kind: CheckType, check_id: str, body: dict[str, Any]) -> KnownCheck:
        """Give a check new fields."""
        path = f"/v1/checks/{kind.path_segment}/{check_id}"
        return _known(await self.ask("PUT", path, body=body))

    async def results(self, check_id: str, *, limit: int) -> list[dict[str, Any]]:
        """The newest results of a check, newest first."""
        found: list[dict[str, Any]] = await self.ask(
            "GET", f"/v1/check-results/{check_id}", query={"limit": str(limit)}
        )
        return found

    async def result(self, check_id: str, result_id: str) -> dict[str, Any]:
        """One result of a check."""
        found: dict[str, Any] = await self.ask("GET", f"/v1/check-results/{check_id}/{result_id}")
        return found

    async def status_pages(self) -> list[dict[str, Any]]:
        """All status pages."""
        return await self.every_by_cursor("/v1/status-pages")

    async def file(self, path: str) -> bytes:
        """A file, such as one of a result."""
        try:
            async with self._session.get(self.url + path) as answer:
                if answer.status != HTTPStatus.OK:
                    await _read(f"GET {path}", answer)
                return await answer.read()
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise ApiUnreachableError(self.url, problem) from problem

    async def sign_in_link(self) -> str:
        """The URL of a link that signs one browser in, once."""
        return str((await self.ask("POST", "/sign-in/links"))["url"])

    async def ping(self, token: str) -> None:
        """Play a job that reports to its heartbeat check; nothing happens while there is none."""
        try:
            await self.ask("POST", f"/ping/{token}")
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise

    async def every(self, path: str, query: Mapping[str, str] | None = None) -> list[Any]:
        """All entries of a list that has numbered pages."""
        found: list[Any] = []
        for page in range(1, _MOST_PAGES):
            paging = {**(query or {}), "limit": str(_PAGE), "page": str(page)}
            entries = await self.ask("GET", path, query=paging)
            found.extend(entries)
            if len(entries) < _PAGE:
                break
        return found

    async def every_by_cursor(self, path: str) -> list[dict[str, Any]]:
        """All entries of a list whose answers name the next one."""
        found: list[dict[str, Any]] = []
        query = {"limit": str(_PAGE)}
        while True:
            part = await self.ask("GET", path, query=query)
            found.extend(part["entries"])
            if part["nextId"] is None:
                return found
            query["nextId"] = part["nextId"]

    async def send_file(self, path: str, file: Path) -> Any:
        """Upload a file."""
        headers = {"content-type": "application/octet-stream"}
        try:
            with file.open("rb") as content:
                request = self._session.put(
                    self.url + path, data=content, headers=headers, timeout=_UPLOAD_LIMIT
                )
                async with request as answer:
                    return await _read(f"PUT {path}", answer)
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise ApiUnreachableError(self.url, problem) from problem

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        limit: aiohttp.ClientTimeout = _LIMIT,
    ) -> Any:
        """Send a request, again while the rate limit refuses it, and read the JSON of its answer.

        Raises:
            ApiRefusedError: the answer is an error.
            ApiUnreachableError: there is none.
        """
        while True:
            try:
                request = self._session.request(
                    method, self.url + path, params=query, json=body, timeout=limit
                )
                async with request as answer:
                    if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                        return await _read(f"{method} {path}", answer)
                    pause_s = _pause_s(answer)
            except (aiohttp.ClientError, TimeoutError) as problem:
                raise ApiUnreachableError(self.url, problem) from problem
            await asyncio.sleep(pause_s)


async def _read(call: str, answer: aiohttp.ClientResponse) -> Any:
    try:
        body = await answer.json(content_type=None)
    except ValueError:
        body = None
    if answer.status >= 400:
        message = body.get("message") if isinstance(body, dict) else None
        raise ApiRefusedError(call, answer.status, str(message or answer.reason), body)
    return body


def _pause_s(answer: aiohttp.ClientResponse) -> float:
    retry_after = answer.headers.get("retry-after", "")
    return min(float(retry_after), 60.0) if retry_after.isdigit() else 1.0


def _known(fields: dict[str, Any]) -> KnownCheck:
    return KnownCheck(
        id=str(fields["id"]),
        name=str(fields["name"]),
        kind=CheckType(fields["checkType"]),
        fields=fields,
    )
