"""Bars on a common time axis: phases of a request, steps of a script, redirects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from contract.evidence import Hop, RequestNode, StepSeen
from contract.result import Timings

WIDTH: Final = 1000
"""Units of the axis, whatever its length in pixels."""
_LEAST: Final = 4.0
"""What is there is seen, however short it was."""
_PHASES: Final = (
    ("wait", "wait", "waited for a connection"),
    ("dns", "DNS", "looked the name up"),
    ("tcp", "connect", "connected"),
    ("tls", "TLS", "agreed on encryption"),
    ("first_byte", "first byte", "waited for the answer to begin"),
    ("download", "download", "read the answer"),
    ("data", "data", "sent the data and read the answer"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stretch of time."""

    kind: str
    """What its colour is chosen by."""
    name: str
    help: str = ""
    """What happened meanwhile; empty where the name says it."""
    x: float
    width: float
    took_ms: float | None
    """None: it did not end."""
    depth: int = 0
    """How many bars around it hold it."""


def draw_phases(timings: Timings) -> tuple[Bar, ...]:
    """The phases that happened, one after the other; the axis is their whole length."""
    took = [
        (kind, name, about, value)
        for kind, name, about in _PHASES
        if (value := getattr(timings, kind)) is not None
    ]
    whole = max(timings.total or 0, sum(value for *_, value in took))
    bars, at = [], 0.0
    for kind, name, about, value in took:
        x, width = _place(at, value, whole)
        bars.append(Bar(kind=kind, name=name, help=about, x=x, width=width, took_ms=value))
        at += value
    return tuple(bars)


def draw_hops(hops: Sequence[Hop]) -> tuple[Bar, ...]:
    """A bar for each answer of a chain of redirects."""
    whole = sum(hop.total_ms or 0 for hop in hops)
    bars, at = [], 0.0
    for hop in hops:
        x, width = _place(at, hop.total_ms or 0, whole)
        bars.append(Bar(kind="hop", name=hop.url, x=x, width=width, took_ms=hop.total_ms))
        at += hop.total_ms or 0
    return tuple(bars)


def draw_steps(steps: Sequence[StepSeen], *, end_ms: float) -> tuple[Bar, ...]:
    """Steps from the start of the run; one that did not end lasts to the end of the run."""
    ends: list[float] = []
    bars = []
    for step in steps:
        start = step.started_after_ms
        took = step.took_ms if step.took_ms is not None else max(end_ms - start, 0)
        while ends and ends[-1] <= start:
            ends.pop()
        x, width = _place(start, took, end_ms)
        bars.append(
            Bar(
                kind="failed" if step.error else step.category.replace(":", "-").replace(".", "-"),
                name=step.title,
                x=x,
                width=width,
                took_ms=step.took_ms,
                depth=min(len(ends), 6),
            )
        )
        ends.append(start + took)
    return tuple(bars)


def draw_calls(calls: Iterable[RequestNode], *, end_ms: float) -> tuple[Bar, ...]:
    """Calls from the start of the run."""
    bars = []
    for call in calls:
        took = call.timings.total
        x, width = _place(call.started_after_ms, took or 0, end_ms)
        kind = "failed" if call.error or (call.status_code or 0) >= 400 else "call"
        bars.append(Bar(kind=kind, name=call.url, x=x, width=width, took_ms=took))
    return tuple(bars)


def _place(start: float, took: float, whole: float) -> tuple[float, float]:
    if whole <= 0:
        return 0.0, _LEAST
    width = max(took / whole * WIDTH, _LEAST)
    return round(min(start / whole * WIDTH, WIDTH - _LEAST), 1), round(min(width, WIDTH), 1)
