"""Pings over one shared socket: real sockets, a network of our own for what loopback cannot do."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

import aioping
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from contract.requests import IpFamily
from contract.result import Echo
from runners.net.icmp.messages import (
    ERROR_TYPES,
    PACKET_BYTES,
    echo_request,
    error_name,
    find_type_and_code,
    internet_checksum,
    read_response,
)
from runners.net.icmp.pinger import MAX_IN_FLIGHT, Pinger
from runners.net.icmp.socket import IcmpPrivilege, PingerUnavailableError
from tests.builders.patience import LONG_S, OFTEN
from tests.servers.island import (
    PROHIBITED,
    SWALLOWED,
    UNREACHABLE,
    complaining_router,
    island,
    let_everybody_ping,
    need_pings,
)

IPV4, IPV6 = IpFamily.IPV4, IpFamily.IPV6
LOOPBACK = {IPV4: "127.0.0.1", IPV6: "::1"}
RAW, UNPRIVILEGED = IcmpPrivilege.RAW, IcmpPrivilege.UNPRIVILEGED

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Both loops: they watch descriptors in different ways."""
    chosen: Run = request.param
    return chosen


def errors(echoes: tuple[Echo, ...]) -> list[str | None]:
    return [echo.error for echo in echoes]


@pytest.mark.parametrize("family", IpFamily)
def test_every_echo_is_answered_in_order(run: Run, family: IpFamily) -> None:
    need_pings(family)

    async def ping() -> None:
        pinger = Pinger()
        echoes = await pinger.ping(
            LOOPBACK[family], family, count=3, interval_s=0.01, wait_s=LONG_S
        )
        pinger.close()
        assert [echo.sequence for echo in echoes] == [1, 2, 3]
        assert all(echo.success and echo.error is None for echo in echoes)
        assert all(echo.ttl == 64 for echo in echoes)
        assert all(0 < (echo.rtt_ms or 0) < LONG_S * 1000 for echo in echoes)

    run(ping())


def test_many_targets_at_once_lose_nothing(run: Run) -> None:
    need_pings()

    async def ping() -> None:
        pinger = Pinger()
        targets = [f"127.0.{at // 250}.{at % 250 + 1}" for at in range(600)]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    pinger.ping(target, IPV4, count=2, interval_s=0.01, wait_s=LONG_S)
                )
                for target in targets
            ]
        pinger.close()
        assert [task.result()[1].success for task in tasks] == [True] * len(targets)
        assert [task.result()[0].success for task in tasks] == [True] * len(targets)

    run(ping())


async def test_two_pingers_do_not_take_each_others_replies() -> None:
    need_pings()
    one, other = Pinger(), Pinger()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(pinger.ping("127.0.0.1", IPV4, count=1, wait_s=LONG_S))
            for pinger in (one, other) * 20
        ]
    one.close()
    other.close()
    assert all(task.result()[0].success for task in tasks)


async def test_the_round_trip_agrees_with_an_independent_pinger() -> None:
    need_pings()
    if os.geteuid() != 0:
        pytest.skip("aioping needs a raw socket")
    pinger = Pinger()
    pairs = []
    for _ in OFTEN:
        (echo,) = await pinger.ping("127.0.0.1", IPV4, count=1, wait_s=LONG_S)
        theirs_ms = await aioping.ping("127.0.0.1", timeout=LONG_S) * 1000
        pairs.append((echo.rtt_ms or 0, theirs_ms))
        if max(pairs[-1]) < 1000:
            break
    pinger.close()
    assert min(pairs[-1]) > 0
    assert max(pairs[-1]) < 1000, pairs


async def test_a_busy_loop_does_not_lengthen_the_round_trip() -> None:
    need_pings()
    pinger = Pinger()
    # The kernel begins to stamp packets a moment after the first socket has asked for it.
    await pinger.ping("127.0.0.1", IPV4, count=3, interval_s=0.05, wait_s=LONG_S)
    for _ in OFTEN:
        ping = asyncio.create_task(pinger.ping("127.0.0.1", IPV4, count=1, wait_s=LONG_S))
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 - a loop that is held up is the case under test
        (echo,) = await ping
        assert echo.rtt_ms is not None
        if echo.rtt_ms < 250:
            break
    pinger.close()
    assert echo.rtt_ms < 250, "the time that the loop stood still is in each of them"


async def test_without_any_privilege_it_is_our_fault() -> None:
    pinger = Pinger(privileges=())
    with pytest.raises(PingerUnavailableError, match="CAP_NET_RAW"):
        await pinger.ping("127.0.0.1", IPV4, count=1, wait_s=1)


async def test_a_closed_pinger_can_be_used_again() -> None:
    need_pings()
    pinger = Pinger()
    for _ in range(2):
        assert (await pinger.ping("127.0.0.1", IPV4, count=1, wait_s=LONG_S))[0].success
        pinger.close()


async def test_a_cancelled_ping_leaves_nothing_behind() -> None:
    with island():
        pinger = Pinger()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await pinger.ping(SWALLOWED[IPV4], IPV4, count=5, interval_s=0.01, wait_s=9)
        assert pinger.in_flight == 0
        pinger.close()


@pytest.mark.parametrize("family", IpFamily)
@pytest.mark.parametrize("privilege", IcmpPrivilege)
def test_a_host_that_swallows_pings_loses_them_all(
    run: Run, family: IpFamily, privilege: IcmpPrivilege
) -> None:
    async def ping() -> None:
        let_everybody_ping()
        pinger = Pinger(privileges=(privilege,))
        assert pinger.privilege(family) is privilege
        echoes = await pinger.ping(SWALLOWED[family], family, count=2, interval_s=0.01, wait_s=0.1)
        pinger.close()
        assert [echo.success for echo in echoes] == [False, False]
        assert errors(echoes) == [None, None]

    with island():
        run(ping())


@pytest.mark.parametrize("family", IpFamily)
def test_unprivileged_pings_are_answered(run: Run, family: IpFamily) -> None:
    async def ping() -> None:
        let_everybody_ping()
        pinger = Pinger(privileges=(UNPRIVILEGED,))
        echoes = await pinger.ping(
            LOOPBACK[family], family, count=3, interval_s=0.01, wait_s=LONG_S
        )
        pinger.close()
        assert all(echo.success and echo.ttl == 64 for echo in echoes)

    with island():
        run(ping())


@pytest.mark.parametrize("quotes", ["header-only", "whole"])
@pytest.mark.parametrize("privilege", IcmpPrivilege)
@pytest.mark.parametrize(
    "complaint",
    [
        (IPV4, 3, 1, "host-unreachable"),
        (IPV4, 3, 13, "communication-prohibited"),
        (IPV4, 11, 0, "time-to-live-exceeded"),
        (IPV6, 1, 0, "no-route"),
        (IPV6, 1, 3, "address-unreachable"),
        (IPV6, 3, 0, "time-to-live-exceeded"),
    ],
    ids=lambda complaint: f"{complaint[0]}-{complaint[3]}",
)
def test_what_a_router_complains_about_is_named(
    run: Run, complaint: tuple[IpFamily, int, int, str], privilege: IcmpPrivilege, quotes: str
) -> None:
    family, kind, code, name = complaint
    quoted = {"header-only": 28 if family is IPV4 else 48, "whole": 104}[quotes]

    async def ping(wire: int) -> None:
        let_everybody_ping()
        pinger = Pinger(privileges=(privilege,))
        with complaining_router(wire, family, kind, code, quoted_bytes=quoted):
            echoes = await pinger.ping(
                SWALLOWED[family], family, count=3, interval_s=0.05, wait_s=LONG_S
            )
            again = await pinger.ping(
                LOOPBACK[family], family, count=2, interval_s=0.01, wait_s=LONG_S
            )
        pinger.close()
        assert errors(echoes) == [name] * 3
        assert all(echo.success for echo in again)

    with island() as wire:
        run(ping(wire))


@pytest.mark.parametrize("privilege", IcmpPrivilege)
def test_what_this_hosts_routes_say_is_named(privilege: IcmpPrivilege) -> None:
    async def ping() -> None:
        let_everybody_ping()
        pinger = Pinger(privileges=(privilege,))
        unreachable = await pinger.ping(UNREACHABLE, IPV4, count=1, wait_s=LONG_S)
        prohibited = await pinger.ping(PROHIBITED, IPV4, count=1, wait_s=LONG_S)
        pinger.close()
        assert errors(unreachable) == ["host-unreachable"]
        assert errors(prohibited) == ["communication-prohibited"]

    with island():
        asyncio.run(ping())


async def test_more_pings_than_there_are_keys_are_refused() -> None:
    need_pings()
    pinger = Pinger()
    pinger.privilege(IPV4)
    exchange = pinger._exchanges[IPV4]
    exchange._pending = dict.fromkeys(range(MAX_IN_FLIGHT))  # type: ignore[assignment, arg-type]
    with pytest.raises(PingerUnavailableError, match="under way"):
        await pinger.ping("127.0.0.1", IPV4, count=1, wait_s=1)
    pinger.close()


@given(st.binary(max_size=200).filter(lambda packet: len(packet) % 2 == 0 and any(packet)))
def test_a_packet_with_its_checksum_sums_up_to_ones(packet: bytes) -> None:
    whole = packet + internet_checksum(packet).to_bytes(2, "big")
    assert int.from_bytes(whole, "big") % 0xFFFF == 0


@given(st.integers(0, 2**32 - 1), st.binary(min_size=8, max_size=8), st.sampled_from(IpFamily))
def test_a_reply_leads_back_to_its_request(key: int, nonce: bytes, family: IpFamily) -> None:
    request = echo_request(family, key, nonce)
    assert len(request) == PACKET_BYTES
    reply = bytes((0 if family is IPV4 else 129,)) + request[1:]
    response = read_response(reply, family, nonce)
    assert response is not None
    assert (response.key, response.error) == (key, None)
    assert read_response(reply, family, bytes(byte ^ 1 for byte in nonce)) is None
    assert read_response(request, family, nonce) is None


@given(st.binary(max_size=120), st.sampled_from(IpFamily), st.binary(min_size=8, max_size=8))
def test_no_bytes_from_the_network_break_the_reader(
    noise: bytes, family: IpFamily, nonce: bytes
) -> None:
    for kind in (0, 129, *ERROR_TYPES[family]):
        read_response(bytes((kind,)) + noise, family, nonce)
    read_response(noise, family, nonce)


def test_every_error_has_a_name_that_leads_back_to_it() -> None:
    for family, kinds in ERROR_TYPES.items():
        for kind, (_, codes) in kinds.items():
            for code in range(max(len(codes), 1)):
                name = error_name(family, kind, code)
                assert find_type_and_code(family, name) == (kind, code)
    assert error_name(IPV4, 3, 99) == "destination-unreachable-99"
    assert error_name(IPV4, 5, 0) is None
    assert find_type_and_code(IPV4, None) == (0, 0)
