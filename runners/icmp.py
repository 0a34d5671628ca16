"""ICMP checks: does this host answer pings?

The response time is the average round trip. Packet loss is judged from the evidence.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from contract.assertions import Source
from contract.checks import IcmpSpec
from contract.requests import IpFamily
from contract.result import Echo, Failure, IcmpEvidence, Timings
from runners.net.icmp.messages import PACKET_BYTES, find_type_and_code
from runners.net.icmp.pinger import ECHO_INTERVAL_S
from runners.net.sockets import strip_brackets
from runners.runner import Fact, JsonText, Numbers, Observation, RunContext
from runners.timing import ms_since, probe_within
from runners.tools import resolve_allowed

LATE_REPLY_S: Final = 1.0
"""How long to wait for a reply to the last request."""
RESERVE_S: Final = 0.2
"""How long before the run's time limit the pings end."""


class IcmpRunner:
    """Pings hosts."""

    spec = IcmpSpec

    async def observe(self, spec: IcmpSpec, ctx: RunContext) -> Observation:
        """Resolve and ping."""
        probe = _Probe(spec, ctx)
        return probe.build_observation(await probe_within(probe, ctx))


class _Probe:
    """One run of an ICMP check."""

    def __init__(self, spec: IcmpSpec, ctx: RunContext) -> None:
        self._spec = spec
        self._ctx = ctx
        self._host = strip_brackets(spec.request.hostname)
        self._family = spec.request.ip_family
        self._started = time.perf_counter()
        self._dns_ms: float | None = None
        self._address: str | None = None
        self._echoes: tuple[Echo, ...] = ()
        self.waiting_for = f"the address of {self._host}"

    async def run(self) -> None:
        """Resolve the host and ping it."""
        addresses = await resolve_allowed(self._host, self._family, self._ctx.network)
        self._address = addresses[0]
        if self._address != self._host:
            self._dns_ms = ms_since(self._started)
        self.waiting_for = f"echo replies from {self._address}"
        left_s = self._ctx.timeout_s - ms_since(self._started) / 1000
        count = self._spec.request.ping_count
        interval_s, wait_s = compute_pace(count, left_s=left_s)
        self._echoes = await self._ctx.network.pinger.ping(
            self._address, self._family, count=count, interval_s=interval_s, wait_s=wait_s
        )

    def build_observation(self, failure: Failure | None) -> Observation:
        """What was observed, complete or not."""
        evidence = self._evidence()
        facts: dict[Source, Fact] = {}
        if evidence.latency:
            facts[Source.LATENCY] = Numbers(evidence.latency)
        if any(one.source is Source.JSON_RESPONSE for one in self._spec.assertions):
            facts[Source.JSON_RESPONSE] = JsonText(render_json(evidence))
        return Observation(
            response_time_ms=evidence.latency.get("avg"),
            timings=Timings(dns=self._dns_ms, total=ms_since(self._started)),
            facts=facts,
            failure=failure,
            evidence=evidence,
        )

    def _evidence(self) -> IcmpEvidence:
        received = sum(echo.success for echo in self._echoes)
        sent = len(self._echoes)
        return IcmpEvidence(
            hostname=self._host,
            resolved_ip=self._address,
            ip_family=self._family,
            packets_sent=sent,
            packets_received=received,
            packet_size=PACKET_BYTES,
            packet_loss=round(100 * (sent - received) / sent, 3) if sent else 0,
            dns_ms=self._dns_ms,
            latency=compute_latency(self._echoes),
            echoes=self._echoes,
        )


def compute_pace(count: int, *, left_s: float) -> tuple[float, float]:
    """Interval and last wait, in s: 500 ms and 1 s, less when the time left is short."""
    usable_s = max(left_s - RESERVE_S, 0.01)
    wanted_s = (count - 1) * ECHO_INTERVAL_S + LATE_REPLY_S
    share = min(usable_s / wanted_s, 1)
    return ECHO_INTERVAL_S * share, LATE_REPLY_S * share


def compute_latency(echoes: Sequence[Echo]) -> dict[str, float]:
    """Avg, min, max and (population) standard deviation in ms; empty without replies."""
    times_ms = [echo.rtt_ms for echo in echoes if echo.rtt_ms is not None]
    if not times_ms:
        return {}
    if len(times_ms) == 1:
        (only,) = times_ms
        return {"avg": only, "min": only, "max": only, "stdDev": 0.0}
    # Not by the module `statistics`, which costs the idle agent 0.55 MB.
    average = math.fsum(times_ms) / len(times_ms)
    variance = math.fsum((time_ms - average) ** 2 for time_ms in times_ms) / len(times_ms)
    return {
        "avg": round(average, 3),
        "min": min(times_ms),
        "max": max(times_ms),
        "stdDev": round(math.sqrt(variance), 3),
    }


def render_json(evidence: IcmpEvidence) -> str:
    """The result object that JSON_RESPONSE assertions read."""
    family = IpFamily(evidence.ip_family)
    result = {
        "hostname": evidence.hostname,
        "resolvedIp": evidence.resolved_ip,
        "ipFamily": evidence.ip_family,
        "pingCount": len(evidence.echoes),
        "packetsSent": evidence.packets_sent,
        "packetsReceived": evidence.packets_received,
        "packetSize": evidence.packet_size,
        "packetLoss": evidence.packet_loss,
        "dnsResolutionTime": evidence.dns_ms,
        "latency": evidence.latency,
        "pingResults": [_render_echo(echo, family) for echo in evidence.echoes],
    }
    return msgspec.json.encode(result).decode()


def _render_echo(echo: Echo, family: IpFamily) -> Mapping[str, object]:
    answered = echo.success or echo.error is not None
    found = find_type_and_code(family, echo.error) if answered else None
    kind, code = found or (None, None)
    return {
        "sequence": echo.sequence,
        "type": kind,
        "code": code,
        "success": echo.success,
        "rtt": echo.rtt_ms,
        "ttl": echo.ttl,
        "error": echo.error,
    }
