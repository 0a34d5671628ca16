"""What a runner is, what it gets, and what it brings back."""

import codecs
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from contract.assertions import Assertion, Source
from contract.checks import CheckSpec
from contract.evidence import TlsFacts
from contract.job import ClientCertificate, Variable
from contract.result import Artifact, Evidence, Failure, LogLine, Timings
from sandbox.workspace import Workspace

if TYPE_CHECKING:
    from runners.tools import Tools


class Number(msgspec.Struct, frozen=True):
    """A fact that is a number: a status code, a time in ms."""

    value: float


class EncodedText(msgspec.Struct, frozen=True):
    """Text as it was received; a long one is decoded where it is judged."""

    content: bytes
    charset: str
    """The name of one of Python's codecs."""

    def __len__(self) -> int:
        return len(self.content)

    def decode(self, *, is_whole: bool = True) -> str:
        """Decode it, without a byte order mark; invalid bytes become replacement characters.

        `is_whole`: else a character that its end cuts in two is left out.
        """
        if is_whole:
            return self.content.decode(self.charset, "replace").removeprefix(_BYTE_ORDER_MARK)
        charset, marks = self.charset, _MARKS.get(self.charset)
        if marks is not None and not self.content.startswith(marks):
            charset = f"{charset}_le"  # as `decode` takes it; the incremental decoder refuses it
        decoder = codecs.getincrementaldecoder(charset)("replace")
        return decoder.decode(self.content).removeprefix(_BYTE_ORDER_MARK)


_BYTE_ORDER_MARK: Final = "\ufeff"
_MARKS: Final = {
    "utf_16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf_32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


class Text(msgspec.Struct, frozen=True):
    """A fact that is text."""

    raw: str | EncodedText
    empty_because: str | None = None
    """Why there is no text, as the end of a sentence. None: there is, or nobody knows."""
    read_bytes: int | None = None
    """How many bytes were read of a longer text. None: this is all of it."""

    @property
    def value(self) -> str:
        """The text."""
        if isinstance(self.raw, str):
            return self.raw
        return self.raw.decode(is_whole=self.read_bytes is None)


class JsonText(msgspec.Struct, frozen=True):
    """A fact that is JSON, read only when an assertion asks for it."""

    raw: str | EncodedText
    unreadable_because: str | None = None
    """Why it cannot be read as JSON, as a sentence. None: it may be tried."""


class Fields(msgspec.Struct, frozen=True):
    """A fact of named texts: headers, by lower-case name."""

    values: Mapping[str, str]


class Numbers(msgspec.Struct, frozen=True):
    """A fact of named numbers: latencies by avg, min, max, stdDev."""

    values: Mapping[str, float]


Fact = Number | Text | JsonText | Fields | Numbers


def connection_facts(tls: TlsFacts | None, address: str | None) -> dict[Source, Fact]:
    """Facts of a connection, as far as they are known."""
    facts: dict[Source, Fact] = {}
    if address is not None:
        facts[Source.REMOTE_ADDRESS] = Text(address)
    if tls is not None and tls.version is not None:
        facts[Source.TLS_VERSION] = Text(tls.version)
    if tls is not None and tls.days_to_expiry is not None:
        facts[Source.DAYS_TO_EXPIRY] = Number(tls.days_to_expiry)
    return facts


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the target; whether they are good is for `judge` to say."""

    response_time_ms: float | None = None
    """The time that thresholds are compared with. None: nothing was measured."""
    timings: Timings = msgspec.field(default_factory=Timings)
    facts: Mapping[Source, Fact] = msgspec.field(default_factory=dict)
    """What assertions read. A missing source makes its assertions fail with a sentence."""
    failure: Failure | None = None
    """What kept the runner from a complete observation. None: nothing did."""
    script_failure: Failure | None = None
    """How a teardown script failed; the answer is judged all the same. None: it did not."""
    degraded_because: str | None = None
    """Why the check's own script calls the target degraded. None: it does not."""
    evidence: Evidence | None = None
    """None: nothing was observed."""
    artifacts: tuple[Artifact, ...] = ()
    log: tuple[LogLine, ...] = ()
    release: Callable[[], None] | None = None
    """Gives back the memory of long facts once they are judged. None: they hold none."""


NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

SpecT_contra = TypeVar("SpecT_contra", bound=CheckSpec, contravariant=True)


class LastPings(Protocol):
    """The heartbeat pings that this agent has received itself; the agent implements it."""

    def silent_for_s(self, token: str) -> float | None:
        """Seconds since the newest ping with this token. None: none came here."""


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use."""

    network: "Tools"
    pings: LastPings
    timeout_s: float
    """The runner ends by itself within this time and says what it was waiting for."""
    limit_s: float | None = None
    """The limit as the user set it, which messages state. None: it is `timeout_s`."""
    variables: tuple[Variable, ...] = ()
    environment: Mapping[str, str] = NOTHING
    """Facts of the run that scripts read from `process.env`; variables of the same name win."""
    location_secrets: Mapping[str, str] = NOTHING
    """The agent's `SERVICE_SECRET_*`, which scripts read too; a check's variable of the same name
    wins. Package managers never get them."""
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """The location's proxy, for the requests of URL and API checks. None: direct."""
    workspace: Workspace = msgspec.field(default_factory=Workspace)
    """Where the run keeps the files that it names as artifacts; whoever made it removes it."""
    keeps_files: bool = False
    """Whether a run that passes keeps its trace and video too, because somebody asked for them."""

    @property
    def stated_limit_s(self) -> float:
        """The limit that messages state."""
        return self.timeout_s if self.limit_s is None else self.limit_s


class Runner(Protocol[SpecT_contra]):
    """One check type: observes a target and returns the facts."""

    @property
    def spec(self) -> type[CheckSpec]:
        """The spec type that this runner takes."""

    async def observe(self, spec: SpecT_contra, ctx: RunContext) -> Observation:
        """Observe the target once.

        Raises:
            CheckFailed: the target could not be observed, and that is the target's fault.
        """


HEAVY_CHARS: Final = 1_000_000
"""Texts of this length are judged in a thread: on the event loop they would block it for 10 ms."""
HUGE_CHARS: Final = 2_000_000
"""Texts of this length are judged in a process: a thread that reads them stops all others."""
FANS_OUT: Final = 16
"""How many times the cost of parsing each part of a JSONPath takes that visits every value."""
_FANNING: Final = ("..", "*", "?")


def is_cpu_bound(spec: CheckSpec, facts: Mapping[Source, Fact]) -> bool:
    """Whether judging would hold up the event loop."""
    assertions: tuple[Assertion, ...] = getattr(spec, "assertions", ())
    for one in assertions:  # a loop, because a generator costs every run 0.5 %
        fact = facts.get(one.source)
        if type(fact) is not Number and _weight(one, fact) >= HEAVY_CHARS:
            return True
    return False


def is_huge(spec: CheckSpec, facts: Mapping[Source, Fact]) -> bool:
    """Whether judging would hold up the threads of the process too."""
    assertions: tuple[Assertion, ...] = getattr(spec, "assertions", ())
    return any(_length(facts.get(one.source)) >= HUGE_CHARS for one in assertions)


def _weight(assertion: Assertion, fact: Fact | None) -> int:
    if isinstance(fact, JsonText):
        times = sum(assertion.property.count(sign) for sign in _FANNING)
        return _length(fact) * int(FANS_OUT**times)
    return _length(fact)


def _length(fact: Fact | None) -> int:
    return len(fact.raw) if isinstance(fact, (Text, JsonText)) else 0
