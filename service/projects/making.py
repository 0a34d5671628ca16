"""From the wish to deploy to the end of the deployment."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import structlog
from sqlalchemy import Connection

from service.audit import audit
from service.audit.model import Entry
from service.db.engine import DatabaseBusyError, DatabaseFullError
from service.http.dependencies import Backend
from service.http.errors import ApiError, InvalidError
from service.projects import actions, rules
from service.projects.deploying import Outcome, check_payloads, deploy
from service.projects.model import (
    CancelledError,
    Change,
    Deployment,
    DeploymentStatus,
    ResourceError,
    Wish,
)
from service.projects.resources.registry import TYPES
from service.projects.resources.resource_type import Work
from service.projects.running import RunningDeployment
from service.projects.schemas import (
    DeployedFile,
    render_change,
    render_project,
)
from service.vault.encryption import Scope

log = structlog.get_logger()

_RENEW_S: Final = 20
"""A third of a lease."""
_MOST_NAMED: Final = 100
"""The audit log names so many resources of a deployment."""
_BUSY: Final = {
    "code": "DATABASE_BUSY",
    "message": "The database is busy, and nothing was changed. Deploy again.",
}
_FULL: Final = {
    "code": "NO_ROOM",
    "message": "The service's disk takes no more, and nothing was changed. Deploy again once it has"
    " room.",
}
_INTERNAL: Final = {
    "code": "INTERNAL_ERROR",
    "message": "An internal error occurred, and nothing was changed; the service's log has it.",
}


class _UndoneError(Exception):
    """A dry run has come to its end, and is undone."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = result
        super().__init__()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A deployment with who asked for it."""

    wish: Wish
    files: Sequence[DeployedFile]
    """What checks name by numbers."""
    entry: Entry
    """What the audit log is to hold, but for what was changed."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes deployments."""

    backend: Backend

    async def preview(self, order: Order) -> Mapping[str, Any]:
        """What a deployment would come to: it is made, and undone.

        Raises:
            InvalidError: a resource cannot be deployed.
            TooManyError: the account has too many deployments that are not over.
        """
        deployments = self.backend.deployments
        with deployments.admit(order.entry.account_id):
            async with deployments.turn:
                return await self._try_out(order)

    async def _try_out(self, order: Order) -> Mapping[str, Any]:
        try:
            wish = await _prepare(order)

            def undone(connection: Connection) -> NoReturn:
                work = self._work(connection, order.entry)
                outcome = deploy(work, wish, lambda _percent: None)
                raise _UndoneError(render_outcome(outcome))  # noqa: TRY301 - in a transaction

            await self.backend.database.write(undone)
        except _UndoneError as done:
            return done.result
        except ResourceError as problem:
            raise InvalidError(str(problem), keys=problem.keys) from problem
        raise AssertionError("a dry run was not undone")

    def start(self, made: Deployment, order: Order, admission: ExitStack) -> None:
        """Let a deployment be made in the background; `admission` is closed at its end."""
        self.backend.deployments.start(
            made.id, lambda running: self._make(made, order, running), admission
        )

    async def _make(self, made: Deployment, order: Order, running: RunningDeployment) -> None:
        turn = self.backend.deployments.turn
        try:
            await self._await_turn(made)
            running.has_turn = True
            try:
                await self._try(made, order, running)
            finally:
                turn.release()
        except CancelledError:
            await self._end(made, DeploymentStatus.CANCELLED, None)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the deployment is over
            await self._end(made, DeploymentStatus.FAILED, _explain(problem))

    async def _await_turn(self, made: Deployment) -> None:
        """Wait until no other is made.

        Raises:
            CancelledError: it is over.
        """
        lock = self.backend.deployments.turn
        turn = asyncio.ensure_future(lock.acquire())
        try:
            while not (await asyncio.wait({turn}, timeout=_RENEW_S))[0]:
                await self._renew(made)
        except BaseException:
            if not turn.cancel():
                lock.release()
            raise

    async def _renew(self, made: Deployment) -> None:
        database, clock = self.backend.database, self.backend.clock
        if not await database.write(lambda c: actions.hold(c, made.id, now_ms=clock.now_ms(c))):
            raise CancelledError

    async def _try(self, made: Deployment, order: Order, running: RunningDeployment) -> None:
        database, clock = self.backend.database, self.backend.clock
        if not await database.write(lambda c: actions.start(c, made.id, now_ms=clock.now_ms(c))):
            raise CancelledError
        wish = await _prepare(order)

        def change(connection: Connection) -> None:
            work = self._work(connection, order.entry)
            # It is locked from here on: whoever ends it waits, and finds it over.
            if not actions.hold(connection, made.id, now_ms=work.scope.now_ms):
                raise CancelledError
            outcome = deploy(work, wish, running.tick)
            running.tick(100)
            _note(work, order, outcome)
            actions.end(
                connection,
                made.id,
                DeploymentStatus.SUCCEEDED,
                result=render_outcome(outcome),
                now_ms=work.scope.now_ms,
            )

        await database.write(change)

    async def _end(
        self, made: Deployment, status: DeploymentStatus, error: Mapping[str, Any] | None
    ) -> None:
        def change(connection: Connection) -> None:
            now_ms = self.backend.clock.now_ms(connection)
            actions.end(connection, made.id, status, error=error, now_ms=now_ms)

        try:
            await self.backend.database.write(change)
        except DatabaseBusyError as problem:  # its lease ends it
            log.warning("deployments.end_postponed", deployment_id=made.id, reason=str(problem))

    def _work(self, connection: Connection, entry: Entry) -> Work:
        now_ms = self.backend.clock.now_ms(connection)
        backend = self.backend
        scope = Scope(entry.account_id, now_ms, backend.vault, backend.regions)
        return Work(connection=connection, scope=scope, pepper=self.backend.pepper)


async def _prepare(order: Order) -> Wish:
    """The wish with all that can be said of it before the database is held up.

    Raises:
        ResourceError: a resource cannot be deployed.
    """
    return await asyncio.to_thread(_fold, order)


def _fold(order: Order) -> Wish:
    rules.require_fit(order.wish.resources)
    files = [one.model_dump() for one in order.files]
    wish = replace(order.wish, resources=tuple(rules.fold(order.wish.resources, files)))
    check_payloads(wish.resources)
    return wish


def _note(work: Work, order: Order, outcome: Outcome) -> None:
    changed = (f"{one.type}/{one.logical_id}" for one in outcome.diff if one.is_change)
    fields = tuple(changed)[:_MOST_NAMED]
    audit.record(work.connection, replace(order.entry, fields=fields, at_ms=work.scope.now_ms))


def _explain(problem: Exception) -> Mapping[str, Any]:
    """What is told of a deployment that failed."""
    if isinstance(problem, ResourceError):
        return {"code": "INVALID_RESOURCES", "message": str(problem), "keys": list(problem.keys)}
    if isinstance(problem, ApiError):
        return {"code": "REFUSED", "message": problem.message, "keys": []}
    if isinstance(problem, DatabaseFullError):
        return {**_FULL, "keys": []}
    if isinstance(problem, DatabaseBusyError):
        return {**_BUSY, "keys": []}
    log.error("deployments.failed", exc_info=problem)
    return {**_INTERNAL, "keys": []}


def render_outcome(outcome: Outcome) -> dict[str, Any]:
    """What a deployment came to as its answer."""
    project = outcome.project and render_project(outcome.project)
    return {"project": project, "diff": [_render_change(one) for one in outcome.diff]}


def _render_change(one: Change) -> dict[str, Any]:
    physical_id = one.physical_id
    return render_change(one, None if physical_id is None else TYPES[one.type].read_id(physical_id))
