"""The states of an agent's life, and how it stops."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

import structlog

log = structlog.get_logger(__name__)


class Stage(StrEnum):
    """The agent's life, in order."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


_STOPS: Final = ("agent.draining", "agent.cancelling", "agent.exiting")
"""What the first, the second and every further request to stop is called in the log."""


class Lifecycle:
    """Starting, ready, draining, stopped; and why the agent is not ready.

    Written by the event loop's thread only; `unready_because` may be read from any thread.
    """

    def __init__(
        self,
        *,
        ready_grace_s: float,
        exit_at_once: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stage = Stage.STARTING
        self.stops_requested = 0
        self.draining = asyncio.Event()
        """Set for good by the first request to stop: take nothing new."""
        self.cancelling = asyncio.Event()
        """Set for good by the second: end what runs."""
        self._ready_grace_s = ready_grace_s
        self._exit_at_once = exit_at_once
        self._clock = clock
        self._away_since: float | None = None
        """None: the service answered last time."""
        self._refused_because: str | None = None
        """None: the service takes our key and version."""
        self.missing: tuple[str, ...] = ()
        """What this agent cannot run now, a sentence each; it may be read from any thread."""

    def __repr__(self) -> str:
        return f"Lifecycle({self.stage.value}, stops_requested={self.stops_requested})"

    @property
    def is_draining(self) -> bool:
        """Whether the agent takes nothing new any more."""
        return self.draining.is_set()

    def ready(self) -> None:
        """Hello was said and the boot check is done."""
        if self.stage is Stage.STARTING:
            self.stage = Stage.READY
            log.info("agent.ready")

    def request_stop(self) -> None:
        """A signal came: drain, then cancel, then exit at once."""
        self.stops_requested += 1
        if self.stops_requested == 1:
            self.stage = Stage.DRAINING
            self.draining.set()
        elif self.stops_requested == 2:
            self.cancelling.set()
        # Only now: whoever reads the line and asks a probe must hear the same.
        log.info(_STOPS[min(self.stops_requested, 3) - 1])
        if self.stops_requested > 2:
            self._exit_at_once()

    def stopped(self) -> None:
        """Nothing runs any more."""
        self.stage = Stage.STOPPED

    def service_answered(self) -> None:
        """The service took a request."""
        self._away_since = None
        self._refused_because = None

    def service_away(self) -> None:
        """The service could not be reached, or could not serve us."""
        if self._away_since is None:
            self._away_since = self._clock()

    def service_refused(self, because: str) -> None:
        """The service refuses our key or our version; `because` is one sentence."""
        self._refused_because = because

    def withdrawn(self, sentences: Iterable[str]) -> None:
        """These checks cannot run here now; an agent that runs others is ready all the same."""
        self.missing = tuple(sentences)

    def unready_because(self) -> str | None:
        """One sentence. None: the agent may be given work."""
        if self.stage is not Stage.READY:
            return f"The agent is {self.stage.value}."
        if self._refused_because is not None:
            return self._refused_because
        away_s = 0.0 if (since := self._away_since) is None else self._clock() - since
        if away_s > self._ready_grace_s:
            return f"The service has not answered for {away_s:.0f} s."
        return None


EXIT_AT_ONCE: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def exit_at_once() -> None:
    """End the process; whatever it held runs out of its lease."""
    os._exit(EXIT_AT_ONCE)


@contextmanager
def on_signals(lifecycle: Lifecycle) -> Iterator[None]:
    """While the block lasts, each SIGTERM and each SIGINT is a request to stop."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, lifecycle.request_stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
