"""Asks a service for a deployment, and follows it to its end."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from picket.api_client import ApiRefusedError, PublicApi
from picket.errors import CommandError, ExitCode

_ASK_FOR_S: Final = 25
"""How long the service holds one question for the end of a deployment."""
_LIMIT: Final = aiohttp.ClientTimeout(total=120)
"""A large project takes its time to be judged."""
_PATIENCE_S: Final = 30 * 60
"""How long another deployment of the project may take."""


class Action(StrEnum):
    """What happens to a resource."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    DETACHED = "DETACHED"


@dataclass(frozen=True, slots=True)
class Entry:
    """A resource that changes."""

    type: str
    logical_id: str
    action: Action
    physical_id: str | None
    fields: tuple[str, ...] = ()
    """The fields that an update changes. Empty: nothing is updated."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the other resources of its project."""
        return self.type, self.logical_id


class Deployments:
    """The deployments of one project."""

    def __init__(self, api: PublicApi, body: Mapping[str, Any], *, keep: bool) -> None:
        """`keep`: whether what is not in the body stays in the project."""
        self._api = api
        self._body = body
        self._keep = keep
        self._project = f"/v1/projects/{quote(body['project']['logicalId'], safe='')}"
        self._path = f"{self._project}/deployments"

    async def plan(self) -> list[Entry]:
        """What the deployment would change."""
        answer = await self._send(dry_run=True)
        return _entries(answer["diff"])

    async def members(self) -> list[Entry]:
        """What the project has now."""
        try:
            found = await self._api.ask("GET", self._project)
        except ApiRefusedError as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        return [_entry({**one, "action": Action.UPDATE}) for one in found["resources"]]

    async def deploy(self, on_wait: Callable[[], None]) -> list[Entry]:
        """Deploy, after others that are going on; what changed.

        `on_wait` is called when another one is waited for. If the task is cancelled, so is the
        deployment.

        Raises:
            CommandError: it failed, with the service's reason.
        """
        started = await self._start(on_wait)
        try:
            ended = await self._await_end(str(started["id"]))
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel(str(started["id"])))
            raise
        return _entries(_result(ended)["diff"])

    async def _start(self, on_wait: Callable[[], None]) -> dict[str, Any]:
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return await self._send_whole()
            except ApiRefusedError as refused:
                is_busy = refused.status == HTTPStatus.CONFLICT and time.monotonic() < until_s
                other = refused.body.get("deploymentId") if is_busy else None
                if other is None:
                    raise
            on_wait()
            await self._await_end(str(other), until_s=until_s)

    async def _send_whole(self) -> dict[str, Any]:
        """Whoever cancels in the meantime cancels what the answer names."""
        sending = asyncio.ensure_future(self._send(dry_run=False))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(CommandError):
                await self._cancel(str((await sending)["id"]))
            raise

    async def _send(self, *, dry_run: bool) -> dict[str, Any]:
        query = {"dryRun": str(dry_run).lower(), "scheduleOnDeploy": "true"}
        if self._keep:
            query["keepMissing"] = "true"
        path = "/v1/projects/deploy"
        found: dict[str, Any] = await self._api.ask(
            "POST", path, query=query, body=self._body, limit=_LIMIT
        )
        return found

    async def _await_end(
        self, deployment_id: str, *, until_s: float | None = None
    ) -> dict[str, Any] | None:
        """Its final state. None: it is gone, or the time is up."""
        path = f"{self._path}/{quote(deployment_id, safe='')}/completion"
        while until_s is None or time.monotonic() < until_s:
            try:
                query = {"maxWaitSeconds": str(_ASK_FOR_S)}
                ended: dict[str, Any] = await self._api.ask("GET", path, query=query, limit=_LIMIT)
            except ApiRefusedError as refused:
                if refused.status == HTTPStatus.NOT_FOUND:
                    return None
                if refused.status != HTTPStatus.REQUEST_TIMEOUT:
                    raise
            else:
                return ended
        return None

    async def _cancel(self, deployment_id: str) -> None:
        path = f"{self._path}/{quote(deployment_id, safe='')}/cancel"
        try:
            await self._api.ask("POST", path)
        except ApiRefusedError:
            return  # it has ended meanwhile


def _result(ended: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if ended is None:
        raise CommandError(
            "the deployment is gone; was the service restored meanwhile? Apply again",
            ExitCode.FAILED,
        )
    if ended["status"] == "SUCCEEDED":
        result: Mapping[str, Any] = ended["result"]
        return result
    error = ended.get("error") or {}
    because = error.get("message") or f"the deployment is {ended['status']}"
    raise CommandError(f"nothing was changed: {because}", ExitCode.FAILED)


def _entries(diff: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """What changes; the service also lists what is as it was."""
    return [_entry(one) for one in diff if one.get("changed", True)]


def _entry(one: Mapping[str, Any]) -> Entry:
    return Entry(
        type=str(one["type"]),
        logical_id=str(one["logicalId"]),
        action=Action(one["action"]),
        physical_id=None if one.get("physicalId") is None else str(one["physicalId"]),
        fields=tuple(one.get("fields") or ()),
    )
