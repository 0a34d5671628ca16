"""The public API as `picket up` and `picket doctor` use it."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from contract.checks import CheckType
from picket.errors import CommandError, ExitCode

_LIMIT = aiohttp.ClientTimeout(total=30)
"""Longer than a busy host stands still; a service that is gone refuses at once."""
_PAGE: Final = 100


class ApiRefusedError(CommandError):
    """The API answered, but not with what was asked for."""

    def __init__(self, call: str, status: int, message: str) -> None:
        super().__init__(f"{call} returned {status}: {message}", ExitCode.OWN_FAULT)
        self.status = status


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
        found: list[dict[str, Any]] = await self._ask("GET", "/v1/private-locations", query=query)
        return found

    async def checks(self, *, tag: str | None = None) -> list[KnownCheck]:
        """All checks of the types that we know, or those with the tag."""
        found: list[KnownCheck] = []
        for page in range(1, 1000):
            query = {"limit": str(_PAGE), "page": str(page)} | ({"tag": tag} if tag else {})
            entries = await self._ask("GET", "/v1/checks", query=query)
            found.extend(_known(entry) for entry in entries)
            if len(entries) < _PAGE:
                break
        return found

    async def create(self, kind: CheckType, body: dict[str, Any]) -> KnownCheck:
        """Create a check."""
        return _known(await self._ask("POST", f"/v1/checks/{kind.path_segment}", body=body))

    async def replace(self, kind: CheckType, check_id: str, body: dict[str, Any]) -> KnownCheck:
        """Give a check new fields."""
        path = f"/v1/checks/{kind.path_segment}/{check_id}"
        return _known(await self._ask("PUT", path, body=body))

    async def results(self, check_id: str, *, limit: int) -> list[dict[str, Any]]:
        """The newest results of a check, newest first."""
        found: list[dict[str, Any]] = await self._ask(
            "GET", f"/v1/check-results/{check_id}", query={"limit": str(limit)}
        )
        return found

    async def result(self, check_id: str, result_id: str) -> dict[str, Any]:
        """One result of a check."""
        found: dict[str, Any] = await self._ask("GET", f"/v1/check-results/{check_id}/{result_id}")
        return found

    async def status_pages(self) -> list[dict[str, Any]]:
        """All status pages."""
        found: list[dict[str, Any]] = []
        query = {"limit": str(_PAGE)}
        while True:
            part = await self._ask("GET", "/v1/status-pages", query=query)
            found.extend(part["entries"])
            if part["nextId"] is None:
                return found
            query["nextId"] = part["nextId"]

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
        return str((await self._ask("POST", "/sign-in/links"))["url"])

    async def ping(self, token: str) -> None:
        """Play a job that reports to its heartbeat check; nothing happens while there is none."""
        try:
            await self._ask("POST", f"/ping/{token}")
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Any:
        while True:
            try:
                request = self._session.request(method, self.url + path, params=query, json=body)
                async with request as answer:
                    if answer.status != 429:
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
        raise ApiRefusedError(call, answer.status, str(message or answer.reason))
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
