"""The phases of an exchange: how long each took, and in which one time ran out."""

from collections.abc import Sequence
from typing import Final

import msgspec
import pycurl

from contract.result import Timings
from runners.net.http.request import HopRequest
from runners.net.http.transfer import CurlTimings, TransferResult

_US_PER_MS: Final = 1000.0


class HopTimings(msgspec.Struct, frozen=True):
    """When the phases of one request ended."""

    times: CurlTimings
    resolves: bool
    """Whether a name had to be looked up."""
    answered: bool
    """Whether a response began; libcurl has a time of the first byte even where there is none."""
    encrypted: bool = False
    """Whether TLS was to be spoken."""
    timed_out: bool = False


def hop_timings(hop: HopRequest, seen: TransferResult, *, proxied: bool) -> HopTimings:
    """When the phases of this request ended."""
    return HopTimings(
        seen.times,
        resolves=proxied or (hop.address is None and not hop.origin.is_literal),
        answered=seen.head is not None,
        encrypted=hop.origin.scheme == "https",
        timed_out=seen.ended.code == pycurl.E_OPERATION_TIMEDOUT,
    )


_PHASES: Final = ("dns", "tcp", "tls", "first_byte", "download")
"""The phases that a request goes through once it is its turn, in their order."""


def sum_timings(hops: Sequence[HopTimings]) -> Timings:
    """The phases of a chain of redirects, each summed over all hops.

    Summed, so that the phases add up to the total, which is what thresholds are held against.
    A phase that no hop went through is None; the one in which time ran out lasts until then.
    Through a proxy, dns and tcp are those of the proxy.
    """
    if not hops:
        return Timings()
    lengths = [_measure(hop) for hop in hops]
    summed = lengths[0] if len(lengths) == 1 else map(_sum, zip(*lengths, strict=True))
    wait, dns, tcp, tls, first_byte, download, total = summed
    return Timings(
        wait=wait,
        dns=dns,
        tcp=tcp,
        tls=tls,
        first_byte=first_byte,
        download=download,
        total=total,
    )


def _measure(hop: HopTimings) -> list[float | None]:
    """The wait, each phase and the total in ms."""
    times, total = hop.times, hop.times.total
    began = min(times.queue if hop.resolves else max(times.queue, times.dns), total)
    lengths: list[float | None] = [began / _US_PER_MS]
    for end in _ends(hop):
        if not end:
            lengths.append(None)
            continue
        # libcurl's times need not follow each other: over QUIC, or where it connected twice.
        later = max(began, min(end, total))
        lengths.append((later - began) / _US_PER_MS)
        began = later
    if hop.timed_out:
        lengths[1 + _PHASES.index(find_hung_phase(hop))] = (total - began) / _US_PER_MS
    lengths.append(total / _US_PER_MS)
    return lengths


def _ends(hop: HopTimings) -> tuple[int, ...]:
    """When each phase ended; 0: it did not, or the request does not go through it."""
    times, answered = hop.times, hop.answered
    return (
        times.dns if hop.resolves else 0,
        times.tcp,
        times.tls,
        times.first_byte if answered else 0,
        times.total if answered and not hop.timed_out else 0,
    )


def find_hung_phase(hop: HopTimings) -> str:
    """The phase in which the time of a request ran out."""
    hung = _PHASES[-1]
    for phase, end in zip(reversed(_PHASES), reversed(_ends(hop)), strict=True):
        if end:
            break
        if (phase != "dns" or hop.resolves) and (phase != "tls" or hop.encrypted):
            hung = phase
    return hung


def _sum(lengths: tuple[float | None, ...]) -> float | None:
    known = [length for length in lengths if length is not None]
    return sum(known) if known else None
