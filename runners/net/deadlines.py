"""Time limits of many runs at once, with one timer for all of them.

Each run has several limits that almost never run out. `asyncio.timeout` sets a timer for each and
asks the system four times which process this is (CPython 3.11 does, whenever it looks for the
running loop): a fifth of a ping's cost. Here a limit is two changes of a dictionary.
"""

import asyncio
from types import TracebackType
from typing import Protocol, Self


class Deadline(Protocol):
    """A wait that ends at a set time, such as a time limit or a ping's; compared by identity."""

    @property
    def ends_at(self) -> float:
        """When it ends, by the event loop's clock."""

    def expire(self) -> None:
        """End the wait: its time is over."""


class Deadlines:
    """Limits on one event loop; each is used as `with deadlines.within(seconds) as limit:`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the first limit, and of all others. None: there was no limit yet."""
        self._open: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        """The timer, which fires no later than the first limit ends. None: it is not set."""
        self._fires_at = 0.0

    def __repr__(self) -> str:
        return f"Deadlines({len(self._open)} open)"

    def within(self, timeout_s: float) -> "TimeLimit":
        """A limit that begins when its block is entered."""
        return TimeLimit(self, timeout_s)

    def watch(self, limit: Deadline) -> None:
        """Expire the limit when its time is over."""
        self._open[limit] = None
        if self._timer is None or limit.ends_at < self._fires_at:
            self._set_timer(limit.ends_at)

    def forget(self, limit: Deadline) -> None:
        """Drop a limit that ended early; the timer stays, and serves the next one."""
        self._open.pop(limit, None)

    def postpone(self, by_s: float) -> None:
        """Move the limits of the current task, which waits for us and not for its target."""
        task = asyncio.current_task(self.loop())
        for limit in self._open:
            if isinstance(limit, TimeLimit) and limit.task is task:
                limit.ends_at += by_s
        if self._open:
            self._set_timer(min(limit.ends_at for limit in self._open))

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _set_timer(self, ends_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = ends_at
        self._timer = self.loop().call_at(ends_at, self._expire_due)

    def _expire_due(self) -> None:
        self._timer = None
        now = self.loop().time()
        for limit in [limit for limit in self._open if limit.ends_at <= now]:
            del self._open[limit]
            limit.expire()
        if self._open:
            self._set_timer(min(limit.ends_at for limit in self._open))


class TimeLimit:
    """One block's limit: when it runs out, the block is cancelled and `TimeoutError` is raised."""

    __slots__ = ("_cancels_before", "_deadlines", "_timeout_s", "ends_at", "expired", "task")

    def __init__(self, deadlines: Deadlines, timeout_s: float) -> None:
        self._deadlines = deadlines
        self._timeout_s = timeout_s
        self.expired = False
        """Whether it was this limit that ended the block."""

    def __enter__(self) -> Self:
        loop = self._deadlines.loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("A time limit needs a task to cancel.")
        self.task: asyncio.Task[object] = task
        self._cancels_before = task.cancelling()
        self.ends_at = loop.time() + self._timeout_s
        self._deadlines.watch(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.expired:
            self._deadlines.forget(self)
            return
        # As asyncio.timeout: somebody else's cancellation goes on being one.
        if self.task.uncancel() <= self._cancels_before and kind is asyncio.CancelledError:
            raise TimeoutError from problem

    def expire(self) -> None:
        """Cancel the block: its time is over."""
        self.expired = True
        self.task.cancel()
