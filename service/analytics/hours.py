"""The results of a check's hour as columns of numbers: what series are computed from exactly.

A result's numbers stand in the JSON that its agent sent. To read a month of those takes seconds;
each hour is therefore read once and kept as a block of packed columns, without rounding.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from contract.evidence import PageMetrics
from contract.result import Timings
from contract.wire import UnreadableMessageError, Wire, decode
from service.analytics.histogram import MOST
from service.analytics.measures import PING_STATES, RESPONSE_TIME, Analytics, Measure
from service.heartbeats.model import PingState
from service.results.model import Finished, RunStatus

_NONE: Final = math.nan
"""Stands where a run has no number."""


class _Response(Wire, frozen=True):
    status_code: int = 0


class _Latency(Wire, frozen=True):
    avg: float | None = None
    min: float | None = None
    max: float | None = None
    std_dev: float | None = None


class Page(Wire, frozen=True):
    """What is measured of a page."""

    index: int = 0
    url: str = ""
    metrics: PageMetrics = PageMetrics()
    console_errors: int = 0
    network_errors: int = 0
    document_errors: int = 0


class _Evidence(Wire, frozen=True):
    response: _Response | str | None = None
    packet_loss: float | None = None
    latency: _Latency = _Latency()
    pages: tuple[Page, ...] = ()
    user_script_errors: int = 0
    silent_for_s: float | None = None
    period_s: float = 0


class _Outcome(Wire, frozen=True):
    timings: Timings = Timings()
    evidence: _Evidence | None = None


class _Result(Wire, frozen=True):
    outcome: _Outcome = _Outcome()


class Facts(NamedTuple):
    """What a measure may read of a run; its `source` is a path from here."""

    status: RunStatus
    response_time_ms: float | None
    timings: Timings
    evidence: _Evidence

    @property
    def first_byte_ms(self) -> float | None:
        """With the TLS handshake, as results show it."""
        return _add(self.timings.first_byte, self.timings.tls)

    @property
    def connection_ms(self) -> float | None:
        """With the TLS handshake."""
        return _add(self.timings.tcp, self.timings.tls)

    @property
    def console_errors(self) -> int:
        """All pages together."""
        return sum(page.console_errors for page in self.evidence.pages)

    @property
    def network_errors(self) -> int:
        """All pages together."""
        return sum(page.network_errors for page in self.evidence.pages)

    @property
    def document_errors(self) -> int:
        """All pages together."""
        return sum(page.document_errors for page in self.evidence.pages)

    @property
    def status_code(self) -> int:
        """The HTTP status of the answer. 0: there was none."""
        response = self.evidence.response
        return response.status_code if isinstance(response, _Response) else 0

    @property
    def ping_state(self) -> int:
        """How the newest ping stood to its time: a position in `PING_STATES`, from 1."""
        if self.status.has_failures:
            state = PingState.FAILING
        elif (self.evidence.silent_for_s or 0) <= self.evidence.period_s:
            state = PingState.RECEIVED
        else:
            state = PingState.GRACE
        return PING_STATES.index(state) + 1


def _add(phase_ms: float | None, also_ms: float | None) -> float | None:
    return None if phase_ms is None else phase_ms + (also_ms or 0)


class Pages(msgspec.Struct, array_like=True, frozen=True):
    """The pages of an hour's runs, in the order of the runs; each field is a column."""

    rows: bytes
    """Position of the page's run in the block, as unsigned 32-bit integers."""
    indexes: bytes
    """Position of the page in its run, as unsigned shorts."""
    urls: tuple[str, ...]
    columns: dict[str, bytes]
    """By measure: doubles, NaN where there is none."""


class Block(msgspec.Struct, array_like=True, frozen=True):
    """The final results of an hour in which somebody looked, oldest first; fields are columns.

    Numbers are in the machine's own byte order, which is little-endian wherever Picket runs.
    """

    offsets: bytes
    """Milliseconds from the beginning of the hour, as unsigned 32-bit integers."""
    successes: bytes
    """1: passed or degraded; 0: failed."""
    attempts: bytes
    """One byte each; 255 stands for more as well."""
    location_of: bytes
    """Position in `locations`, as unsigned shorts."""
    locations: tuple[str, ...]
    dimensions: bytes
    """Status codes or states, as unsigned shorts; 0: none. Empty: the type has neither."""
    columns: dict[str, bytes]
    """By measure: doubles, NaN where there is none."""
    pages: Pages | None = None
    """None: the type has no pages, or they were left out."""

    @property
    def size(self) -> int:
        """How many results there are."""
        return len(self.successes)

    def slice_of(self, start_ms: int, end_ms: int) -> tuple[int, int]:
        """The positions of the results of a part of the hour, from its beginning; end exclusive."""
        offsets = memoryview(self.offsets).cast("I")
        return bisect_left(offsets, max(start_ms, 0)), bisect_left(offsets, max(end_ms, 0))

    def pages_of(self, first: int, end: int) -> tuple[int, int]:
        """The positions of the pages of a slice."""
        rows = memoryview(self.pages.rows).cast("I") if self.pages and self.pages.rows else ()
        return bisect_left(rows, first), bisect_left(rows, end)


class _Rest(msgspec.Struct, array_like=True, frozen=True):
    """What few requests ask for, stored by itself: it is three quarters of a block."""

    columns: dict[str, bytes]
    pages: Pages | None


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Block)
_decoder_of_rest: Final = msgspec.msgpack.Decoder(_Rest)


def pack(block: Block) -> tuple[bytes, bytes]:
    """The block as it is stored: with response times alone, and the rest."""
    times = {name: column for name, column in block.columns.items() if name == RESPONSE_TIME}
    rest = {name: column for name, column in block.columns.items() if name not in times}
    head = msgspec.structs.replace(block, columns=times, pages=None)
    return _encoder.encode(head), _encoder.encode(_Rest(rest, block.pages))


def unpack(head: bytes, rest: bytes | None) -> Block:
    """A stored block. None: without the rest."""
    block = _decoder.decode(head)
    if rest is None:
        return block
    more = _decoder_of_rest.decode(rest)
    return msgspec.structs.replace(block, columns=block.columns | more.columns, pages=more.pages)


def bytes_per_result(analytics: Analytics) -> int:
    """How long the head of a block is for each result of a type, its names left aside."""
    columns = any(one.name == RESPONSE_TIME and one.source for one in analytics.stored)
    return 8 + 2 * bool(analytics.dimension) + 8 * columns


def build(finals: Iterable[Finished], analytics: Analytics, *, hour_ms: int) -> Block:
    """The block of an hour of a check of a type; `finals` are in the order of time."""
    rows = _Rows(analytics, hour_ms)
    for final in finals:
        rows.add(final)
    return rows.block()


class _Rows:
    """Columns that grow."""

    def __init__(self, analytics: Analytics, hour_ms: int) -> None:
        self._hour_ms = hour_ms
        self._offsets, self._places = array("I"), array("H")
        self._successes, self._attempts = bytearray(), bytearray()
        self._locations: dict[str, int] = {}
        self._dimension = attrgetter(analytics.dimension) if analytics.dimension else None
        self._dimensions = array("H")
        self._columns = _Columns([one for one in analytics.stored if one.source], "source")
        page_measures = [one for one in analytics.stored if one.page_source]
        self._has_pages = bool(page_measures)
        self._page_columns = _Columns(page_measures, "page_source")
        self._page_rows, self._page_indexes = array("I"), array("H")
        self._urls: list[str] = []

    def add(self, final: Finished) -> None:
        """Take a result."""
        facts = _facts(final)
        self._offsets.append(final.started_ms - self._hour_ms)
        self._successes.append(not final.status.has_failures)
        self._attempts.append(min(final.attempt, 255))
        self._places.append(self._locations.setdefault(final.location, len(self._locations)))
        if self._dimension is not None:
            self._dimensions.append(_short(self._dimension(facts)))
        self._columns.add(facts)
        for page in facts.evidence.pages if self._has_pages else ():
            self._page_rows.append(len(self._successes) - 1)
            self._page_indexes.append(_short(page.index))
            self._urls.append(page.url)
            self._page_columns.add(page)

    def block(self) -> Block:
        """What was taken."""
        return Block(
            offsets=self._offsets.tobytes(),
            successes=bytes(self._successes),
            attempts=bytes(self._attempts),
            location_of=self._places.tobytes(),
            locations=tuple(self._locations),
            dimensions=self._dimensions.tobytes(),
            columns=self._columns.pack(),
            pages=self._pages() if self._has_pages else None,
        )

    def _pages(self) -> Pages:
        return Pages(
            rows=self._page_rows.tobytes(),
            indexes=self._page_indexes.tobytes(),
            urls=tuple(self._urls),
            columns=self._page_columns.pack(),
        )


class _Columns:
    """A column for each of several measures."""

    def __init__(self, measures: Sequence[Measure], source: str) -> None:
        self._read = [(attrgetter(getattr(one, source)), array("d")) for one in measures]
        self._names = [one.name for one in measures]

    def add(self, seen: Facts | Page) -> None:
        """A number for each."""
        for read, column in self._read:
            column.append(_number(read(seen)))

    def pack(self) -> dict[str, bytes]:
        """The columns, by the names of their measures."""
        return {
            name: column.tobytes()
            for name, (_, column) in zip(self._names, self._read, strict=True)
        }


def _number(value: Any) -> float:
    """A number as it can be kept; a mad one must not spoil the sums of all others."""
    return value if value is not None and 0 <= value <= MOST else _NONE


def _short(value: int) -> int:
    return value if 0 <= value <= 0xFFFF else 0


def _facts(final: Finished) -> Facts:
    outcome = _outcome(final.body) if final.body else _NOTHING
    evidence = outcome.evidence or _NO_EVIDENCE
    return Facts(final.status, final.response_time_ms, outcome.timings, evidence)


_NOTHING: Final = _Outcome()
_NO_EVIDENCE: Final = _Evidence()


def _outcome(body: bytes) -> _Outcome:
    """Nothing, where the body is damaged: its status and time are known without it."""
    try:
        return decode(body, _Result).outcome
    except UnreadableMessageError:
        return _NOTHING
