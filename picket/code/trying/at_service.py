"""Runs checks of files once on the agents of a location, through a test session of a service."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import aiohttp

from picket.api_client import ApiRefusedError, PublicApi
from picket.code.trying.verdicts import Tried, Verdict
from picket.errors import CommandError, ExitCode

_ASK_FOR_S: Final = 5
_LIMIT: Final = aiohttp.ClientTimeout(total=120)
_SESSIONS: Final = "/v1/test-sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A check to run, and what is known of it before."""

    payload: Mapping[str, Any]
    logical_id: str
    tried: Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Where and how long checks run."""

    name: str
    project: str
    location: str
    """The slug of a private location."""
    shared_files: Sequence[Mapping[str, str]]
    patience_s: float
    """Checks that have not ended by then are errors."""


async def try_at_service(
    api: PublicApi, session: Session, jobs: Sequence[Job], on_end: Callable[[Tried], None]
) -> list[Tried]:
    """Run the checks; `on_end` is called as each ends. If the task is cancelled, so are they.

    Raises:
        ApiRefusedError: the service refuses one of them, or the location.
    """
    started = await api.ask("POST", f"{_SESSIONS}/run", body=_body(session, jobs), limit=_LIMIT)
    session_id = str(started["testSessionId"])
    waiting = _Waiting(api, session_id, _by_result(started, jobs), on_end)
    try:
        return await waiting.until_end(jobs, session)
    except asyncio.CancelledError:
        await asyncio.shield(_cancel(api, session_id))
        raise


def _body(session: Session, jobs: Sequence[Job]) -> dict[str, Any]:
    suite_id = str(uuid4())
    return {
        "name": session.name,
        "checkRunJobs": [
            {
                **one.payload,
                "logicalId": one.logical_id,
                "filePath": one.tried.source,
                "testRetryStrategy": None,
                "sourceInfo": {
                    "checkRunSuiteId": suite_id,
                    "checkRunId": str(uuid4()),
                    "updateSnapshots": False,
                },
            }
            for one in jobs
        ],
        "project": {"logicalId": session.project},
        "sharedFiles": [*session.shared_files],
        "runLocation": {"type": "PRIVATE", "slugName": session.location},
        "repoInfo": None,
        "environment": None,
        "shouldRecord": True,
        "streamLogs": False,
        "refreshCache": False,
    }


def _by_result(started: Mapping[str, Any], jobs: Sequence[Job]) -> dict[str, Job]:
    """The jobs, by the ids of their results."""
    ids = started.get("testResultIds") or {}
    return {str(ids[one.logical_id]): one for one in jobs if one.logical_id in ids}


class _Waiting:
    """Waits for the results of one session."""

    def __init__(
        self,
        api: PublicApi,
        session_id: str,
        by_result: Mapping[str, Job],
        on_end: Callable[[Tried], None],
    ) -> None:
        self._api = api
        self._path = f"{_SESSIONS}/{quote(session_id, safe='')}"
        self._by_result = by_result
        self._on_end = on_end
        self._ended: dict[str, Tried] = {}

    async def until_end(self, jobs: Sequence[Job], session: Session) -> list[Tried]:
        """All of them, those included that did not end in time."""
        until_s = time.monotonic() + session.patience_s
        while time.monotonic() < until_s:
            has_ended, seen = await self._look()
            await self._take(seen)
            if has_ended:
                break
        else:
            await _cancel(self._api, self._path.rpartition("/")[2])
        return [self._ended.get(one.logical_id) or self._lost(one, session) for one in jobs]

    async def _look(self) -> tuple[bool, Mapping[str, Any]]:
        try:
            query = {"maxWaitSeconds": str(_ASK_FOR_S)}
            path = f"{self._path}/completion"
            return True, await self._api.ask("GET", path, query=query, limit=_LIMIT)
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.REQUEST_TIMEOUT:
                raise
        return False, await self._api.ask("GET", self._path)

    async def _take(self, seen: Mapping[str, Any]) -> None:
        """Read the results that came since the last look."""
        finals = [one for one in seen["results"] if one["resultType"] == "FINAL"]
        if len(finals) <= len(self._ended):
            return
        for result_id, job in self._by_result.items():
            if job.logical_id in self._ended:
                continue
            path = f"{self._path}/results/{quote(result_id, safe='')}"
            try:
                result = await self._api.ask("GET", path)
            except ApiRefusedError as refused:
                if refused.status == HTTPStatus.NOT_FOUND:
                    continue  # its run goes on
                raise
            tried = _read(job.tried, result, link=f"{self._api.url}/checks/try/{result_id}")
            self._ended[job.logical_id] = tried
            self._on_end(tried)

    def _lost(self, job: Job, session: Session) -> Tried:
        because = f"No result came; is an agent running at the location {session.location}?"
        tried = replace(job.tried, verdict=Verdict.ERROR, reason=because)
        self._on_end(tried)
        return tried


def _read(tried: Tried, result: Mapping[str, Any], *, link: str | None) -> Tried:
    status = str(result["status"])
    known = Verdict(status) if status in list(Verdict) else None
    verdict = Verdict.ERROR if result.get("hasErrors") or known is None else known
    milliseconds = result.get("responseTime") or 0
    return replace(
        tried,
        verdict=verdict,
        reason=result.get("error") or _degraded_because(result),
        took_s=milliseconds / 1000,
        log="\n".join(_log_lines(result)),
        link=link,
    )


def _degraded_because(result: Mapping[str, Any]) -> str | None:
    if not result.get("isDegraded"):
        return None
    because = result.get("degradedBecause")
    return str(because) if because else "It works, but exceeds a threshold for degradation."


def _details(result: Mapping[str, Any]) -> Mapping[str, Any]:
    for key, value in result.items():
        if key.endswith("CheckResult") and isinstance(value, dict):
            return value
    return {}


def _log_lines(result: Mapping[str, Any]) -> list[str]:
    found = _details(result).get("jobLog") or _details(result).get("logs") or []
    groups = found.values() if isinstance(found, dict) else [found]
    lines = [one for group in groups if isinstance(group, list) for one in group]
    return [
        f"{one.get('level', 'INFO')} {one.get('msg') or one.get('message') or ''}"
        for one in lines
        if isinstance(one, dict)
    ]


async def _cancel(api: PublicApi, session_id: str) -> None:
    try:
        await api.ask("POST", f"{_SESSIONS}/{quote(session_id, safe='')}/cancel", body={})
    except ApiRefusedError:
        return  # it has ended, or the service cannot cancel


async def choose_location(api: PublicApi, wanted: str | None) -> tuple[str, int]:
    """The slug to run at, and how many agents are there: the one that is wanted, or the only one.

    Raises:
        CommandError: there is no such location, or nobody said which of several.
    """
    agents = {str(one["slugName"]): int(one["agentCount"]) for one in await api.locations()}
    slug = next(iter(agents)) if wanted is None and len(agents) == 1 else wanted
    if slug is not None and slug in agents:
        return slug, agents[slug]
    known = ", ".join(sorted(agents)) or "none"
    if wanted is None:
        raise CommandError(f"name the location with --location; the service has {known}")
    raise CommandError(f"--location is {wanted}; the service has {known}", ExitCode.BAD_INPUT)
