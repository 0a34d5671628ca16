"""ICMP checks against loopback and a network of our own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Comparison, Source
from contract.checks import IcmpRequest
from contract.requests import IpFamily
from contract.result import Echo, FailureKind, IcmpEvidence, Status
from runners.icmp import IcmpRunner, compute_latency, compute_pace, render_json
from runners.judging.judge import judge
from runners.net.egress.rules import EgressRules
from runners.net.icmp.pinger import Pinger
from runners.net.icmp.socket import PingerUnavailableError
from runners.runner import JsonText, Numbers, Observation, RunContext
from runners.tools import Tools
from tests.builders.context import PingTable, a_context, a_network
from tests.builders.patience import LONG_S
from tests.builders.specs import an_assertion, an_icmp_spec
from tests.servers.island import SWALLOWED, complaining_router, island, need_pings

JSON = (an_assertion(Source.JSON_RESPONSE, Comparison.NOT_EMPTY),)


def evidence(seen: Observation) -> IcmpEvidence:
    assert isinstance(seen.evidence, IcmpEvidence)
    return seen.evidence


@pytest.mark.usefixtures("patient_pings")
async def test_a_host_that_answers_is_described() -> None:
    need_pings()
    spec = an_icmp_spec(request=IcmpRequest(hostname="127.0.0.1", ping_count=2), assertions=JSON)
    async with a_context() as ctx:
        seen = await IcmpRunner().observe(spec, ctx)
    found = evidence(seen)
    assert seen.failure is None
    assert (found.packets_sent, found.packets_received, found.packet_loss) == (2, 2, 0)
    assert found.resolved_ip == "127.0.0.1"
    assert found.dns_ms is None
    assert seen.response_time_ms == found.latency["avg"]
    assert seen.facts[Source.LATENCY] == Numbers(found.latency)
    assert judge(spec, seen).status is Status.PASSED
    fact = seen.facts[Source.JSON_RESPONSE]
    assert isinstance(fact, JsonText)
    document = json.loads(fact.raw)
    assert document["pingResults"][0]["success"] is True
    assert (document["pingResults"][0]["type"], document["pingCount"]) == (0, 2)
    assert set(document) == {
        "hostname",
        "resolvedIp",
        "ipFamily",
        "pingCount",
        "packetsSent",
        "packetsReceived",
        "packetSize",
        "packetLoss",
        "dnsResolutionTime",
        "latency",
        "pingResults",
    }


async def test_the_lookup_of_a_name_is_timed_apart() -> None:
    need_pings()
    async with a_context(names={"gate.test": ("127.0.0.1",)}) as ctx:
        seen = await IcmpRunner().observe(an_icmp_spec("gate.test"), ctx)
    assert evidence(seen).dns_ms is not None
    assert seen.timings.dns == evidence(seen).dns_ms


@pytest.mark.usefixtures("hasty_pings")
async def test_a_host_that_swallows_everything_is_a_loss_to_be_judged() -> None:
    with island():
        async with a_context() as ctx:
            spec = an_icmp_spec(request=IcmpRequest(hostname=SWALLOWED[IpFamily.IPV4]))
            seen = await IcmpRunner().observe(spec, ctx)
    assert seen.failure is None
    assert seen.response_time_ms is None
    assert Source.LATENCY not in seen.facts
    assert evidence(seen).packet_loss == 100
    assert evidence(seen).packets_sent == 10
    outcome = judge(spec, seen)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.PACKET_LOSS


@pytest.mark.usefixtures("patient_pings")
async def test_what_a_router_says_stands_in_the_evidence() -> None:
    spec = an_icmp_spec(SWALLOWED[IpFamily.IPV4], assertions=JSON)
    with island() as wire:
        async with a_context() as ctx:
            with complaining_router(wire, IpFamily.IPV4, 3, 1, quoted_bytes=28):
                seen = await IcmpRunner().observe(spec, ctx)
    assert [echo.error for echo in evidence(seen).echoes] == ["host-unreachable"]
    (result,) = json.loads(render_json(evidence(seen)))["pingResults"]
    assert (result["type"], result["code"], result["error"]) == (3, 1, "host-unreachable")


async def test_a_forbidden_host_is_not_pinged() -> None:
    rules = EgressRules.parse(allow=(), deny=("127.0.0.1",))
    async with a_context(egress=rules) as ctx:
        seen = await IcmpRunner().observe(an_icmp_spec(), ctx)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS


async def test_a_missing_privilege_is_ours_and_propagates() -> None:
    async with a_network() as tools:
        bare = Tools(
            http=tools.http,
            pinger=Pinger(privileges=()),
            resolver=tools.resolver,
            egress=tools.egress,
        )
        ctx = RunContext(network=bare, pings=PingTable(), timeout_s=LONG_S)
        with pytest.raises(PingerUnavailableError):
            await IcmpRunner().observe(an_icmp_spec(), ctx)


@given(st.integers(1, 50), st.floats(0, 60))
def test_the_pings_always_end_before_the_time_does(count: int, left_s: float) -> None:
    interval_s, wait_s = compute_pace(count, left_s=left_s)
    assert 0 < interval_s <= 0.5
    assert 0 < wait_s <= 1
    assert (count - 1) * interval_s + wait_s <= max(left_s - 0.2, 0.01) * 1.000001


def test_fifty_pings_keep_their_pace_within_the_usual_limit() -> None:
    assert compute_pace(50, left_s=30) == (0.5, 1.0)


def test_the_latency_is_that_of_the_replies_alone() -> None:
    echoes = [
        Echo(sequence=1, success=True, rtt_ms=1.0),
        Echo(sequence=2, success=False),
        Echo(sequence=3, success=True, rtt_ms=3.0),
    ]
    assert compute_latency(echoes) == {"avg": 2.0, "min": 1.0, "max": 3.0, "stdDev": 1.0}
    assert compute_latency(echoes[1:2]) == {}
    thirds = [Echo(sequence=at, success=True, rtt_ms=float(at != 1)) for at in (1, 2, 3)]
    assert compute_latency(thirds) == {"avg": 0.667, "min": 0.0, "max": 1.0, "stdDev": 0.471}
