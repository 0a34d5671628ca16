"""Hello: said until the service answers, and what it says."""

import asyncio

import msgspec
import pytest

from agent.api_client.errors import KeyRefusedError, VersionRefusedError
from agent.api_client.hello import Handshake, served_slots
from agent.api_client.retry import Backoff
from contract.agent_api import Hello, Limits, UnavailableType
from contract.checks import CheckType, Lane
from tests.builders.agents import QUICK, a_client
from tests.builders.patience import LONG_S
from tests.fakes.service import FakeService, Fault

HELLO = Hello(
    agent_id="agent-1",
    version="1",
    platform="linux-x86_64",
    check_types=(CheckType.URL,),
    slots={Lane.UPTIME: 4},
)


async def test_hello_is_tried_until_the_service_answers() -> None:
    limits: list[Limits] = []
    async with FakeService(limits=Limits(results=7)) as service, a_client(service) as client:
        service.fail("hello", Fault(status=503), Fault(cut="before"), Fault(status=500))
        handshake = Handshake(client, HELLO, on_limits=limits.append)
        assert await handshake.first_hello(Backoff(QUICK, client.outage), until=asyncio.Event())
    assert [limit.results for limit in limits] == [7]
    assert service.hellos == [HELLO]


@pytest.mark.parametrize(("status", "error"), [(401, KeyRefusedError), (426, VersionRefusedError)])
async def test_a_refusal_ends_the_tries(status: int, error: type[Exception]) -> None:
    async with FakeService() as service, a_client(service) as client:
        service.fail_always("hello", Fault(status=status))
        handshake = Handshake(client, HELLO, on_limits=lambda _limits: None)
        with pytest.raises(error):
            await handshake.first_hello(Backoff(QUICK, client.outage), until=asyncio.Event())
    assert service.calls("hello") == 1


async def test_an_agent_that_is_told_to_stop_says_hello_no_more() -> None:
    stop = asyncio.Event()
    async with FakeService() as service, a_client(service) as client:
        service.fail_always("hello", Fault(status=503))
        handshake = Handshake(client, HELLO, on_limits=lambda _limits: None)
        trying = asyncio.create_task(
            handshake.first_hello(Backoff(QUICK, client.outage), until=stop)
        )
        await service.until(lambda: service.calls("hello") > 1)
        stop.set()
        assert await trying is False


async def test_an_agent_that_is_told_to_stop_waits_for_no_answer() -> None:
    stop = asyncio.Event()
    async with FakeService() as service, a_client(service) as client:
        service.fail_always("hello", Fault(delay_s=600))
        handshake = Handshake(client, HELLO, on_limits=lambda _limits: None)
        trying = asyncio.create_task(
            handshake.first_hello(Backoff(QUICK, client.outage), until=stop)
        )
        await service.until(lambda: service.calls("hello") == 1)
        stop.set()
        assert await asyncio.wait_for(trying, LONG_S) is False


@pytest.mark.parametrize(
    ("types", "slots"),
    [
        ((CheckType.URL, CheckType.API), {Lane.UPTIME: 8, Lane.MAIN: 0}),
        ((CheckType.API, CheckType.MULTI_STEP), {Lane.UPTIME: 8, Lane.MAIN: 2}),
        ((CheckType.BROWSER,), {Lane.UPTIME: 0, Lane.MAIN: 2}),
        ((CheckType.URL, CheckType.PLAYWRIGHT), {Lane.UPTIME: 8, Lane.MAIN: 2}),
        ((), {Lane.UPTIME: 0, Lane.MAIN: 0}),
    ],
)
def test_only_lanes_with_work_get_slots(
    types: tuple[CheckType, ...], slots: dict[Lane, int]
) -> None:
    assert served_slots({Lane.UPTIME: 8, Lane.MAIN: 2}, types) == slots


async def test_an_agent_without_scripts_for_api_checks_claims_none_by_the_main_lane() -> None:
    lost = UnavailableType(type=CheckType.API, cause="a", remedy="b", only_with_scripts=True)
    types = (CheckType.URL, CheckType.API, CheckType.MULTI_STEP)
    hello = msgspec.structs.replace(HELLO, check_types=types, unavailable=(lost,))
    async with a_client("http://127.0.0.1:9") as client:
        handshake = Handshake(client, hello, on_limits=lambda _limits: None)
    assert handshake.check_types([Lane.UPTIME]) == types
    assert handshake.check_types([Lane.MAIN]) == (CheckType.URL, CheckType.MULTI_STEP)
