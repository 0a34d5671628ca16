"""One job under its deadline."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping

import msgspec
import pytest

from contract.assertions import Comparison, Source
from contract.checks import UrlSpec
from contract.result import CheckFailed, FailureKind, Status
from runners.execute import execute
from runners.runner import HEAVY_CHARS, Fact, JsonText, Number, Observation, RunContext
from tests.builders.context import a_context
from tests.builders.observations import an_http_observation
from tests.builders.specs import a_job, an_api_spec, an_assertion


class Scripted:
    """A runner that does what the test says."""

    spec = UrlSpec

    def __init__(self, act: Callable[[], Awaitable[Observation]]) -> None:
        self._act = act

    async def observe(self, spec: UrlSpec, ctx: RunContext) -> Observation:
        return await self._act()


async def never() -> Observation:
    await asyncio.sleep(3600)
    raise AssertionError


async def refuses() -> Observation:
    raise CheckFailed(FailureKind.CONNECT, "It refused.", {"code": "ECONNREFUSED"})


async def test_what_was_seen_is_judged() -> None:
    async def sees() -> Observation:
        return an_http_observation(503)

    async with a_context() as ctx:
        outcome = await execute(a_job(), Scripted(sees), ctx)
    assert outcome.status is Status.FAILED
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.HTTP_STATUS


async def test_the_targets_fault_is_an_outcome() -> None:
    async with a_context() as ctx:
        outcome = await execute(a_job(), Scripted(refuses), ctx)
    assert outcome.status is Status.FAILED
    assert outcome.failure is not None
    assert outcome.failure.message == "It refused."


async def test_a_run_that_outlives_its_deadline_tells_the_limit_that_was_set() -> None:
    async with a_context() as ctx:
        limited = msgspec.structs.replace(ctx, limit_s=40)
        outcome = await execute(a_job(deadline_s=0.05), Scripted(never), limited)
    assert outcome.status is Status.TIMED_OUT
    assert outcome.failure is not None
    assert outcome.failure.message == "The check did not end within its limit of 40 s."


@pytest.mark.parametrize("bug", [ZeroDivisionError(), OSError(24, "files"), TimeoutError("ours")])
async def test_our_own_fault_propagates_untouched(bug: Exception) -> None:
    async def breaks() -> Observation:
        raise bug

    async with a_context() as ctx:
        with pytest.raises(type(bug)) as caught:
            await execute(a_job(), Scripted(breaks), ctx)
    assert caught.value is bug


async def test_a_cancelled_run_is_cancelled() -> None:
    async with a_context() as ctx:
        run = asyncio.create_task(execute(a_job(), Scripted(never), ctx))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


class ReadAside(Mapping[Source, Fact]):
    """Facts that, when another thread reads them, wait until the loop has had a turn."""

    def __init__(self, facts: Mapping[Source, Fact]) -> None:
        self._facts = facts
        self._loop = asyncio.get_running_loop()
        self._loops_thread = threading.get_ident()
        self.read_aside = 0
        """How often another thread read while the loop went on."""

    def __getitem__(self, source: Source) -> Fact:
        if threading.get_ident() != self._loops_thread:
            turned = threading.Event()
            self._loop.call_soon_threadsafe(turned.set)
            self.read_aside += turned.wait(60)
        return self._facts[source]

    def __iter__(self) -> Iterator[Source]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


@pytest.mark.parametrize(("numbers", "aside"), [(HEAVY_CHARS // 2, True), (1, False)])
async def test_a_heavy_judgement_does_not_stop_the_loop(numbers: int, *, aside: bool) -> None:
    body = JsonText("[" + ",".join(["1"] * numbers) + "]")
    facts = ReadAside({Source.STATUS_CODE: Number(200), Source.JSON_BODY: body})

    async def sees() -> Observation:
        return Observation(response_time_ms=1, facts=facts)

    items = an_assertion(Source.JSON_BODY, Comparison.EQUALS, str(numbers), property="$.length")
    job = a_job(spec=an_api_spec(assertions=(items,)))
    async with a_context() as ctx:
        outcome = await execute(job, Scripted(sees), ctx)
    assert outcome.status is Status.PASSED
    assert (facts.read_aside > 0) is aside
