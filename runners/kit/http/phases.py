"""How long each phase of an exchange took. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from contract.result import Timings
from runners.kit.http.transfer import Ticks

_US_PER_MS: Final = 1000.0


class Lap(msgspec.Struct, frozen=True):
    """One hop's clock."""

    ticks: Ticks
    resolves: bool
    """A name had to be looked up."""
    answered: bool
    """An answer began; libcurl has a time for its first byte even where there is none."""


def timings(laps: Sequence[Lap]) -> Timings:
    """The phases of a chain of redirects, each summed over all hops.

    Summed, so that the phases add up to the total, which is what thresholds are held against.
    A phase that no hop went through is None. Through a proxy, dns and tcp are those of the proxy.
    """
    phases = [_phases(lap) for lap in laps]
    if not phases:
        return Timings()
    if len(phases) == 1:
        wait, dns, tcp, tls, first_byte, download, total = phases[0]
    else:
        wait, dns, tcp, tls, first_byte, download, total = map(_sum, zip(*phases, strict=True))
    return Timings(
        wait=wait,
        dns=dns,
        tcp=tcp,
        tls=tls,
        first_byte=first_byte,
        download=download,
        total=total,
    )


def _phases(lap: Lap) -> tuple[float | None, ...]:
    """Wait, dns, tcp, tls, first byte, download and total in ms."""
    ticks, resolves = lap.ticks, lap.resolves
    looked_up = max(ticks.queue, ticks.dns)
    wait, dns = ticks.queue, looked_up - ticks.queue
    if not resolves:
        wait, dns = looked_up, 0
    connected = max(ticks.tcp, ticks.tls)
    return (
        wait / _US_PER_MS,
        dns / _US_PER_MS if resolves and ticks.dns else None,
        _between(looked_up, ticks.tcp),
        _between(ticks.tcp, ticks.tls),
        _between(connected, ticks.first_byte) if lap.answered else None,
        _between(ticks.first_byte, ticks.total) if lap.answered else None,
        ticks.total / _US_PER_MS,
    )


def _between(start: int, end: int) -> float | None:
    """From the end of one phase to the end of the next. None: the next did not come to an end."""
    if not end:
        return None
    return (end - start) / _US_PER_MS if end > start else 0.0


def _sum(parts: tuple[float | None, ...]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
