"""API checks whose bodies are too large for the event loop, and for one memory together."""

import asyncio
from collections.abc import Iterable

import msgspec
import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.result import Outcome, Status
from runners.api import ApiRunner
from runners.execute import JudgingBrokeError, execute
from runners.net.http.body_memory import BodyLease, BodyMemory, BodyMemoryError
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.runner import HUGE_CHARS, RunContext
from tests.builders.agents import until
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, an_api_spec, an_assertion
from tests.servers.http_origin import Page, http_origin, reply

SIZE = 10 * 1024 * 1024
TEXT = reply(b"word " * (SIZE // 5), content_type="text/plain")
HAS_WORD = an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "word")
ROWS = b'{"rows": [%s], "odd": "\\ud800", "n": 1e400}' % b",".join(
    b'{"id": %d}' % number for number in range(400_000)
)
JSON = reply(ROWS, content_type="application/json")


class MeasuredMemory(BodyMemory):
    """Remembers the most that was held, and how many waited."""

    most_bytes = 0
    most_waiting = 0

    def take(self, lease: BodyLease, size_bytes: int) -> bool:
        taken = super().take(lease, size_bytes)
        self._note()
        return taken

    def give_back(self, lease: BodyLease, size_bytes: int) -> None:
        super().give_back(lease, size_bytes)
        self._note()

    def _note(self) -> None:
        self.most_bytes = max(self.most_bytes, self.held_bytes)
        self.most_waiting = max(self.most_waiting, self.waiting)


async def run(url: str, ctx: RunContext, assertions: Iterable[Assertion]) -> Outcome:
    spec = an_api_spec(url, assertions=tuple(assertions))
    return await execute(a_job(spec, deadline_s=300), ApiRunner(), ctx)


async def test_bodies_beyond_the_memory_wait_and_are_judged_all_the_same() -> None:
    memory = MeasuredMemory(64 * 1024 * 1024, max_wait_s=LONG_S)
    async with http_origin(TEXT) as origin, a_context(bodies=memory) as ctx:
        checks = (run(origin.url(), ctx, [HAS_WORD]) for _ in range(12))
        outcomes = await asyncio.gather(*checks)
    assert {one.status for one in outcomes} == {Status.PASSED}
    assert memory.most_bytes <= 32 * 1024 * 1024
    assert memory.most_waiting > 0
    assert (memory.held_bytes, memory.waiting) == (0, 0)
    told = [line.message for one in outcomes for line in one.log]
    assert any("for memory to keep the response's body" in message for message in told)


async def test_a_run_that_gets_no_memory_is_given_back_and_never_fails() -> None:
    memory = BodyMemory(max_wait_s=0.05)
    async with http_origin(TEXT) as origin, a_context(bodies=memory) as ctx:
        holder = BodyLease(ctx.network.bodies, postpone=lambda _: None)
        holder.take(READ_LIMIT_BYTES * 6, lambda: None)
        with pytest.raises(BodyMemoryError):
            await run(origin.url(), ctx, [HAS_WORD])
        holder.release()
        assert (await run(origin.url(), ctx, [HAS_WORD])).status is Status.PASSED
        assert ctx.network.bodies.held_bytes == 0


async def test_a_run_that_is_stopped_while_it_waits_leaves_nothing() -> None:
    async with http_origin(TEXT) as origin, a_context() as ctx:
        memory = ctx.network.bodies
        holder = BodyLease(memory, postpone=lambda _: None)
        holder.take(READ_LIMIT_BYTES * 6, lambda: None)
        task = asyncio.create_task(run(origin.url(), ctx, [HAS_WORD]))
        await until(lambda: memory.waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        holder.release()
        assert (memory.held_bytes, memory.waiting) == (0, 0)


@pytest.mark.parametrize("page", [reply(b"x" * 60_000), reply(b"x" * 300_000)])
async def test_only_a_body_that_results_do_not_keep_takes_memory(page: Page) -> None:
    memory = MeasuredMemory()
    async with http_origin(page) as origin, a_context(bodies=memory) as ctx:
        any_text = an_assertion(Source.TEXT_BODY, Comparison.NOT_EMPTY)
        await run(origin.url(), ctx, [any_text])
    assert memory.most_bytes in (0, 300_000)
    assert (memory.most_bytes == 0) == (len(page) < 65_536)


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        (an_assertion(Source.JSON_BODY, Comparison.EQUALS, "7", property="$.rows[7].id"), True),
        (an_assertion(Source.JSON_BODY, Comparison.EQUALS, "8", property="$['rows'][7].id"), False),
        (
            an_assertion(Source.JSON_BODY, Comparison.EQUALS, "400000", property="$.rows.length"),
            True,
        ),
        (an_assertion(Source.JSON_BODY, Comparison.NOT_NULL, property="$.rows[*].id"), True),
        (an_assertion(Source.JSON_BODY, Comparison.IS_NULL, property="$.none.of.these"), True),
        (an_assertion(Source.JSON_BODY, Comparison.GREATER_THAN, "5", property="$.n"), True),
        (an_assertion(Source.JSON_BODY, Comparison.HAS_KEY, "odd", property="$"), True),
    ],
)
async def test_a_huge_body_is_judged_as_any_other(assertion: Assertion, *, holds: bool) -> None:
    assert len(ROWS) > HUGE_CHARS
    async with http_origin(JSON) as origin, a_context() as ctx:
        outcome = await run(origin.url(), ctx, [assertion])
        await until(lambda: ctx.network.judging.pid is None)
    assert (outcome.status is Status.PASSED) == holds
    msgspec.json.encode(outcome)


async def test_a_judging_process_that_ends_is_no_failure_of_the_check() -> None:
    async with http_origin(JSON) as origin, a_context() as ctx:
        slow = an_assertion(
            Source.JSON_BODY, Comparison.NOT_NULL, property="$.rows[?@.id != -1 && @.id != -2].id"
        )
        task = asyncio.create_task(run(origin.url(), ctx, [slow]))
        await until(lambda: ctx.network.judging.pid)
        ctx.network.judging.kill()
        with pytest.raises(JudgingBrokeError):
            await task
        assert (await run(origin.url(), ctx, [HAS_WORD])).status is Status.FAILED


async def test_what_lies_behind_the_limit_is_not_green() -> None:
    page = reply(b"x" * READ_LIMIT_BYTES + b"error", content_type="text/plain")
    absent = an_assertion(Source.TEXT_BODY, Comparison.NOT_CONTAINS, "error")
    there = an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "error")
    async with http_origin(page) as origin, a_context() as ctx:
        outcome = await run(origin.url(), ctx, [absent, there])
    assert outcome.status is Status.FAILED
    assert all(f"irst {READ_LIMIT_BYTES} bytes" in (one.error or "") for one in outcome.assertions)
