"""Errors reported to the service: the specification's five facts, without secrets.

A report that fails is dropped, and reporting never raises.

An exception's message keeps only words that are constants of the code that raised it, or that the
interpreter itself uses. URLs, headers, response bodies, configuration and keys come from elsewhere,
so they cannot pass; there is no list of bad patterns that could be incomplete.
"""

import asyncio
import builtins
import os
import platform
import re
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import ServiceError
from agent.telemetry.logs import Redactor
from contract.agent_api import ErrorEvent, Events
from redaction.policy import HIDDEN, SHORTEST_CHARS

SAME_ERROR_S: Final = 60.0
"""How long an error that was reported is not reported again."""
REPORTS_PER_MINUTE: Final = 30
SEND_LIMIT_S: Final = 10.0
_QUEUE: Final = 64
_BATCH: Final = 16
_REMEMBERED: Final = 256
_MESSAGE_LIMIT: Final = 1_000

_reporting: ContextVar[bool] = ContextVar("reporting", default=False)
"""True inside the reporter, whose own errors are not reported."""

log = structlog.get_logger(__name__)


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


class NoReporter:
    """What stands in the reporter's place with `EXTERNAL_OBSERVABILITY=off`: it sends nothing."""

    def note(self, event: str, error: BaseException | None) -> None:
        """Forget it."""

    async def run(self) -> None:
        """There is nothing to do."""


class ErrorReporter:
    """Takes notes of errors anywhere in the agent and sends them from one task."""

    def __init__(
        self,
        client: ServiceClient,
        facts: AgentFacts,
        *,
        secrets: Iterable[str] = (),
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._facts = facts
        self._redactor = Redactor(secrets)
        self._environment_values = _collect_long_values(environment)
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
                await self._client.send_events(Events(events=batch))
        except (ServiceError, TimeoutError) as problem:
            log.debug("report.lost", count=len(batch), because=type(problem).__name__)

    def _report(self, event: str, error: BaseException | None) -> ErrorEvent:
        message = clean_event(event)
        if error is not None:
            message = f"{message}: {format_message(error)}"
        return ErrorEvent(
            message=self._clean(message)[:_MESSAGE_LIMIT],
            stack_trace=self._clean(format_stack(error)) if error is not None else "",
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


def _collect_long_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the process's environment that are too long to be ordinary words."""
    values = {value for value in environment.values() if len(value) >= SHORTEST_CHARS}
    return tuple(sorted(values, key=len, reverse=True))


GAP: Final = "…"
"""Stands for whatever was left out."""
_LIMIT: Final = 8_000
_DEPTH: Final = 6
_FRAMES: Final = 40
_RAISERS: Final = 3
"""The innermost frames, whose constants a message may be made of."""
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_STDLIB: Final = str(Path(os.__file__).resolve().parent)
_CHUNK: Final = re.compile(r"[^\s'\"(){}\[\]<>,;=`]+")
_WORD: Final = re.compile(r"[^\W\d][\w.\-]*[\w]|[^\W\d]")
_PLACEHOLDER: Final = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d.*]*[a-zA-Z]|\{[^{}]*\}")
_EVENT: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+){1,2}")
_INTERPRETER_SAYS: Final = frozenset(
    """a already an and argument arguments assigned at attribute attributes be before by bytes can
    cannot character characters closed codec concatenate connection could decode deque dict during
    empty encode event exceeded expected Expected failed for found from future generator get got
    has have identifier in index input instance instances integer invalid is iterable iterate
    iteration key keyword length list loop lost many maximum missing must name no None not object
    of on only open operand operands operation or out outside positional pop position range read
    recursion required reset running scope sequence set size str string sub-exception
    sub-exceptions subscriptable supported takes task TaskGroup than the timed timeout to too tuple
    type types unexpected unhandled Unknown unpack unsupported using value values variable was were
    where which while with zero division associated access local referenced refused write
    Error Exception Fatal Task Unclosed Unhandled callback client connector exception handling
    never request retrieved session transport
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
_BUILTIN_NAMES: Final = frozenset(dir(builtins)) | {"NoneType"}
_IDENTIFIER_ERRORS: Final = (TypeError, AttributeError, NameError, ImportError)
"""The interpreter names parts of the code in these."""


def format_message(error: BaseException) -> str:
    """Type and cleaned text of an exception, on one line."""
    text = _format_os_error(error) if isinstance(error, OSError) else _format_own_text(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def format_stack(error: BaseException) -> str:
    """Where the exception and those behind it were raised, innermost frame last."""
    return "\n".join(_format_chain(error, _DEPTH, seen=set()))[:_LIMIT]


def clean_event(text: str) -> str:
    """The name of a log event; of any other text, the words that any log line may hold."""
    if _EVENT.fullmatch(text):
        return text
    return " ".join(_keep_known_words(text, _INTERPRETER_SAYS))


def _format_chain(error: BaseException, depth: int, *, seen: set[int]) -> Iterator[str]:
    if depth == 0 or id(error) in seen:
        return
    seen.add(id(error))
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None and id(behind) not in seen:
        yield from _format_chain(behind, depth - 1, seen=seen)
        yield "which led to" if error.__cause__ else "while handling it:"
    yield from _format_frames(error)
    yield format_message(error)
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions[:_DEPTH]:
            yield "one of the group:"
            yield from _format_chain(member, depth - 1, seen=seen)


def _format_frames(error: BaseException) -> Iterator[str]:
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-_FRAMES:]:
        code = frame.f_code
        yield f"  {_shorten_path(code.co_filename)}:{line} in {code.co_qualname}"


def _shorten_path(file_name: str) -> str:
    """A source file relative to what it belongs to, so that no directory of the host shows."""
    _, found, inside = file_name.rpartition("site-packages/")
    if found:
        return inside
    for root in (_STDLIB, _ROOT):
        if file_name.startswith(f"{root}/"):
            return file_name[len(root) + 1 :]
    return file_name.rpartition("/")[2]


def _format_os_error(error: OSError) -> str:
    """What the operating system calls the error; host and file names are left out."""
    if error.errno is None:
        return _format_own_text(error)
    return f"[Errno {error.errno}] {os.strerror(error.errno)}"


def _format_own_text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{len(error.exceptions)} exceptions"
    return " ".join(_keep_known_words(_read_text(error), _collect_known_words(error)))


def _read_text(error: BaseException) -> str:
    try:
        return str(error)[:_LIMIT]
    except Exception:  # noqa: BLE001 - a broken __str__ must not stop the report of its error
        return ""


def _keep_known_words(text: str, known: frozenset[str]) -> Iterator[str]:
    """The known words in their order, one gap for each run of others."""
    gap = False
    for chunk in _CHUNK.findall(text):
        word = chunk.strip(".:!?-")
        if word in known and _WORD.fullmatch(word):
            gap = False
            yield chunk
        elif word and not gap:
            gap = True
            yield GAP


def _collect_known_words(error: BaseException) -> frozenset[str]:
    """The words that a message of this exception may hold."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-_RAISERS:]
    words = {word for code in frames for word in _split_words(_find_texts(code.co_consts))}
    if isinstance(error, _IDENTIFIER_ERRORS):
        for code in frames:
            words.update(code.co_names, code.co_varnames, {code.co_name})
    return frozenset(words) | _INTERPRETER_SAYS | _BUILTIN_NAMES


def _find_texts(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _find_texts(constant)
        elif isinstance(constant, CodeType):
            # A comprehension is a function of its own; its constants stand in the same line.
            yield from _find_texts(constant.co_consts)


def _split_words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for chunk in _CHUNK.findall(_PLACEHOLDER.sub(" ", text)):
            yield chunk.strip(".:!?-")
