"""Error reports to the service: the specification's five facts, and silence when told so.

Best effort by design: a report that fails is forgotten, and reporting never raises.
"""

import asyncio
import os
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from agent.error_text import event_of, message_of, stack_of
from agent.errors import ServiceError
from agent.redaction import Redactor
from contract.agent_api import ErrorEvent, Events
from runners.kit.secrets.job_secrets import SHORTEST_CHARS
from runners.kit.secrets.sensitive import HIDDEN

SAME_ERROR_S: Final = 60.0
"""The same error is reported once in this time."""
REPORTS_PER_MINUTE: Final = 30
SEND_LIMIT_S: Final = 10.0
_QUEUE: Final = 64
_BATCH: Final = 16
_REMEMBERED: Final = 256
_MESSAGE_LIMIT: Final = 1_000

_reporting: ContextVar[bool] = ContextVar("reporting", default=False)
"""True inside the reporter, whose own trouble is nobody's news."""

log = structlog.get_logger(__name__)


class EventSink(Protocol):
    """The service, as far as error reports go."""

    async def send_events(self, events: Events) -> None:
        """Send once.

        Raises:
            ServiceError: they did not arrive.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """Three of the five facts: what an agent is, apart from what went wrong with it."""

    agent_version: str
    platform: str = field(
        default_factory=lambda: f"{platform.system().lower()}-{platform.machine()}"
    )
    runtime_version: str = field(
        default_factory=lambda: (
            f"{platform.python_implementation().lower()}-{platform.python_version()}"
        )
    )


class Silence:
    """What stands in the reporter's place with `EXTERNAL_OBSERVABILITY=off`: it sends nothing."""

    def note(self, event: str, error: BaseException | None) -> None:
        """Forget it."""

    async def run(self) -> None:
        """There is nothing to do."""


class ErrorReporter:
    """Takes notes of errors anywhere in the agent and sends them from one task."""

    def __init__(
        self,
        sink: EventSink,
        facts: AgentFacts,
        *,
        secrets: Iterable[str] = (),
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._facts = facts
        self._redactor = Redactor(secrets)
        self._environment_values = _telling_values(environment)
        self._allowance = _Allowance(clock)
        self._waiting: asyncio.Queue[ErrorEvent] = asyncio.Queue(_QUEUE)
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that sends, and its thread below. None: it has not begun."""
        self._thread = threading.get_ident()

    def note(self, event: str, error: BaseException | None) -> None:
        """Take note of an error-level event; `event` is its constant name.

        Any thread may call it; it never raises.
        """
        if _reporting.get() or isinstance(error, asyncio.CancelledError):
            return
        report = self._report(event, error)
        if not self._allowance.grants(report):
            return
        if self._loop is None or threading.get_ident() == self._thread:
            self._keep(report)
            return
        with suppress(RuntimeError):  # the loop is closed: the agent has ended
            self._loop.call_soon_threadsafe(self._keep, report)

    async def run(self) -> None:
        """Send what was noted; runs until it is cancelled."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        _reporting.set(True)
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < _BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await self._send(tuple(batch))

    def _keep(self, report: ErrorEvent) -> None:
        if not self._waiting.full():
            self._waiting.put_nowait(report)

    async def _send(self, batch: tuple[ErrorEvent, ...]) -> None:
        try:
            async with asyncio.timeout(SEND_LIMIT_S):
                await self._sink.send_events(Events(events=batch))
        except (ServiceError, TimeoutError) as problem:
            log.debug("report.lost", count=len(batch), because=type(problem).__name__)

    def _report(self, event: str, error: BaseException | None) -> ErrorEvent:
        message = event_of(event)
        if error is not None:
            message = f"{message}: {message_of(error)}"
        return ErrorEvent(
            message=self._clean(message)[:_MESSAGE_LIMIT],
            stack_trace=self._clean(stack_of(error)) if error is not None else "",
            agent_version=self._facts.agent_version,
            platform=self._facts.platform,
            runtime_version=self._facts.runtime_version,
        )

    def _clean(self, text: str) -> str:
        for value in self._environment_values:
            text = text.replace(value, HIDDEN)
        return self._redactor.text(text)


class _Allowance:
    """Lets the same error through once a minute, and all errors a number of times a minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_sent: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._minute_began = clock()
        self._granted = 0

    def grants(self, report: ErrorEvent) -> bool:
        """Whether this report may be sent now; a grant is used up by asking."""
        now = self._clock()
        if now - self._minute_began >= 60:
            self._minute_began, self._granted = now, 0
        key = (report.message, report.stack_trace)
        if self._granted >= REPORTS_PER_MINUTE or self._is_fresh(key, now):
            return False
        self._granted += 1
        self._last_sent[key] = now
        self._last_sent.move_to_end(key)
        if len(self._last_sent) > _REMEMBERED:
            self._last_sent.popitem(last=False)
        return True

    def _is_fresh(self, key: tuple[str, str], now: float) -> bool:
        last = self._last_sent.get(key)
        return last is not None and now - last < SAME_ERROR_S


def _telling_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the process's environment that are long enough to be told from words."""
    values = {value for value in environment.values() if len(value) >= SHORTEST_CHARS}
    return tuple(sorted(values, key=len, reverse=True))
