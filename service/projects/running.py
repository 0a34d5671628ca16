"""Deployments that this process makes, and who waits for any."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from service.db.engine import Database
from service.live.waiters import Waiters
from service.projects import store
from service.projects.model import CancelledError, DeploymentEnded


@dataclass(slots=True, eq=False)
class RunningDeployment:
    """One that this process makes."""

    progress: int = 0
    """Percent."""
    is_cancelled: bool = False

    def tick(self, progress: int) -> None:
        """Note how far it is.

        Raises:
            CancelledError: somebody has cancelled it.
        """
        self.progress = progress
        if self.is_cancelled:
            raise CancelledError


class Deployments:
    """The tasks that make deployments, and who waits for the end of one."""

    def __init__(self, database: Database) -> None:
        self.waiters = Waiters(database, name="deployments", list_open=store.list_open_of)
        database.listen(DeploymentEnded, lambda ended: self.waiters.wake([ended.deployment_id]))
        self._running: dict[str, RunningDeployment] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self, deployment_id: str, make: Callable[[RunningDeployment], Awaitable[None]]
    ) -> asyncio.Task[None]:
        """Make a deployment, whether or not whoever asked for it stays."""
        running = self._running[deployment_id] = RunningDeployment()

        async def carry_out() -> None:
            try:
                await make(running)
            finally:
                del self._running[deployment_id]

        task = asyncio.create_task(carry_out(), name=f"deployment-{deployment_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def find(self, deployment_id: str) -> RunningDeployment | None:
        """One that this process makes. None: another one does, or it is over."""
        return self._running.get(deployment_id)

    async def close(self) -> None:
        """Send everyone home, and end what is being made: each takes seconds at most."""
        self.waiters.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
