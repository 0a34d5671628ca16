"""What a runner brings back: facts, without an opinion on them."""

from collections.abc import Mapping

import msgspec

from contract.assertions import Source
from contract.result import Artifact, Evidence, Failure, LogLine, Timings


class Number(msgspec.Struct, frozen=True):
    """A fact that is a number: a status code, a time in ms."""

    value: float


class Text(msgspec.Struct, frozen=True):
    """A fact that is text."""

    value: str
    empty_because: str | None = None
    """Why there is no text, as the end of a sentence. None: there is, or nobody knows."""


class JsonText(msgspec.Struct, frozen=True):
    """A fact that is JSON, read only when an assertion asks for it."""

    text: str
    unreadable_because: str | None = None
    """Why it cannot be read as JSON, as a sentence. None: it may be tried."""


class Fields(msgspec.Struct, frozen=True):
    """A fact of named texts: headers, by lower-case name."""

    values: Mapping[str, str]


class Numbers(msgspec.Struct, frozen=True):
    """A fact of named numbers: latencies by avg, min, max, stdDev."""

    values: Mapping[str, float]


Fact = Number | Text | JsonText | Fields | Numbers


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the target; whether they are good is for `judge` to say."""

    response_time_ms: float | None = None
    """What thresholds are held against. None: nothing was measured."""
    timings: Timings = msgspec.field(default_factory=Timings)
    facts: Mapping[Source, Fact] = msgspec.field(default_factory=dict)
    """What assertions read. A missing source makes its assertions fail with a sentence."""
    failure: Failure | None = None
    """What stood in the way of a full look. None: nothing did."""
    script_failure: Failure | None = None
    """What a script made wrong after the answer, which is judged all the same. None: nothing."""
    degraded_because: str | None = None
    """What the check's own script says against it. None: nothing."""
    evidence: Evidence | None = None
    """None: there was nothing to see."""
    artifacts: tuple[Artifact, ...] = ()
    log: tuple[LogLine, ...] = ()
