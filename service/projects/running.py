"""Deployments that this process makes, and who waits for any."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from service.db.engine import Database
from service.http.errors import TooManyError
from service.live.waiters import Waiters
from service.projects import store
from service.projects.model import CancelledError, DeploymentEnded

_MOST_OF_ACCOUNT: Final = 5
"""Deployments and dry runs of an account, each of which may have a body of megabytes."""
_RETRY_S: Final = 5


@dataclass(slots=True, eq=False)
class RunningDeployment:
    """One that this process makes."""

    progress: int = 0
    """Percent."""
    has_turn: bool = False
    """False: others are made before it."""
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
        self.turn = asyncio.Lock()
        """Whose one is made, or tried: nobody else can write meanwhile, so that others wait here,
        and what else is written comes between two of them."""
        self._of_account: Counter[str] = Counter()
        self._running: dict[str, RunningDeployment] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @contextmanager
    def admit(self, account_id: str) -> Iterator[None]:
        """Count a deployment or a dry run of an account until it is over.

        Raises:
            TooManyError: the account has too many that are not over.
        """
        if self._of_account[account_id] >= _MOST_OF_ACCOUNT:
            raise TooManyError(
                f"{_MOST_OF_ACCOUNT} deployments of this account are not over yet; try again in"
                f" {_RETRY_S} s.",
                headers={"retry-after": str(_RETRY_S)},
            )
        self._of_account[account_id] += 1
        try:
            yield
        finally:
            self._of_account[account_id] -= 1

    def start(
        self,
        deployment_id: str,
        make: Callable[[RunningDeployment], Awaitable[None]],
        admission: ExitStack,
    ) -> asyncio.Task[None]:
        """Make a deployment, whether or not whoever asked for it stays.

        `admission` is closed at its end.
        """
        running = self._running[deployment_id] = RunningDeployment()

        async def carry_out() -> None:
            with admission:
                await make(running)

        task = asyncio.create_task(carry_out(), name=f"deployment-{deployment_id}")
        self._tasks[deployment_id] = task
        task.add_done_callback(lambda _task: self._forget(deployment_id))
        return task

    def _forget(self, deployment_id: str) -> None:
        del self._running[deployment_id]
        del self._tasks[deployment_id]

    def find(self, deployment_id: str) -> RunningDeployment | None:
        """One that this process makes. None: another one does, or it is over."""
        return self._running.get(deployment_id)

    async def close(self) -> None:
        """Send everyone home, and let what is being made come to its end, which takes seconds.

        The leases of those that wait for their turn end them.
        """
        self.waiters.close()
        tasks = tuple(self._tasks.values())
        for deployment_id, running in self._running.items():
            if not running.has_turn:
                self._tasks[deployment_id].cancel()
        if tasks:
            await asyncio.wait(tasks)
