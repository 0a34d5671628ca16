"""API checks whose bodies are too large for the event loop, and for one memory together."""

import asyncio
import subprocess
import sys
from collections.abc import Iterable
from functools import partial

import msgspec
import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.result import Outcome, Status
from runners.api import ApiRunner
from runners.execute import execute
from runners.judging.judging_process import JudgingBrokeError, JudgingProcess
from runners.net.http.body_memory import JUDGING_BYTES, BodyMemory, BodyMemoryError
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.runner import HUGE_CHARS, Number, Observation, RunContext, Text
from tests.builders.agents import until
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, an_api_spec, an_assertion
from tests.servers.http_origin import http_origin, reply, resets_after

SIZE = 4 * 1024 * 1024
TEXT = reply(b"word " * (SIZE // 5), content_type="text/plain")
HAS_WORD = an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "word")
ROWS = b'{"rows": [%s], "odd": "\\ud800", "n": 1e400}' % b",".join(
    b'{"id": %d}' % number for number in range(200_000)
)
JSON = reply(ROWS, content_type="application/json")


ROOM = 8 * 1024 * 1024


class MeasuredMemory(BodyMemory):
    """Remembers the most that was held."""

    most_bytes = 0

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @held_bytes.setter
    def held_bytes(self, value: int) -> None:
        self._held_bytes = value
        self.most_bytes = max(self.most_bytes, value)


async def run(url: str, ctx: RunContext, assertions: Iterable[Assertion]) -> Outcome:
    spec = an_api_spec(url, assertions=tuple(assertions))
    return await execute(a_job(spec, deadline_s=300), ApiRunner(), ctx)


async def test_bodies_beyond_the_memory_wait_and_are_judged_all_the_same() -> None:
    memory = MeasuredMemory(JUDGING_BYTES + ROOM, max_wait_s=LONG_S)
    async with http_origin(TEXT) as origin, a_context(bodies=memory) as ctx:
        checks = (run(origin.url(), ctx, [HAS_WORD]) for _ in range(8))
        outcomes = await asyncio.gather(*checks)
    assert {one.status for one in outcomes} == {Status.PASSED}
    assert 0 < memory.most_bytes <= ROOM
    assert (memory.held_bytes, memory.waiting) == (0, 0)
    told = [line.message for one in outcomes for line in one.log]
    assert any("for memory to keep the response's body" in message for message in told)


async def test_a_run_that_gets_no_memory_is_given_back_and_never_fails() -> None:
    memory = BodyMemory(JUDGING_BYTES + ROOM, max_wait_s=0.05)
    async with http_origin(TEXT) as origin, a_context(bodies=memory) as ctx:
        assert memory.take(ROOM)
        with pytest.raises(BodyMemoryError):
            await run(origin.url(), ctx, [HAS_WORD])
        memory.give_back(ROOM)
        assert (await run(origin.url(), ctx, [HAS_WORD])).status is Status.PASSED
    assert memory.held_bytes == 0


async def test_a_body_that_is_lost_after_a_wait_is_no_failure_of_the_check() -> None:
    memory = BodyMemory(JUDGING_BYTES + ROOM, max_wait_s=LONG_S)
    page = resets_after(reply(b"x" * 300_000, length=400_000))
    async with http_origin(page) as origin, a_context(bodies=memory) as ctx:
        assert memory.take(ROOM)
        task = asyncio.create_task(run(origin.url(), ctx, [HAS_WORD]))
        await until(lambda: memory.waiting)
        memory.give_back(ROOM)
        with pytest.raises(BodyMemoryError, match="was lost"):
            await task
    assert memory.held_bytes == 0


async def test_a_run_that_is_stopped_while_it_waits_leaves_nothing() -> None:
    memory = BodyMemory(JUDGING_BYTES + ROOM, max_wait_s=LONG_S)
    async with http_origin(TEXT) as origin, a_context(bodies=memory) as ctx:
        assert memory.take(ROOM)
        task = asyncio.create_task(run(origin.url(), ctx, [HAS_WORD]))
        await until(lambda: memory.waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (memory.held_bytes, memory.waiting) == (ROOM, 0)
        assert ctx.network.http.running == 0


async def test_a_huge_body_is_judged_as_any_other() -> None:
    of_json = partial(an_assertion, Source.JSON_BODY)
    assertions = {
        of_json(Comparison.EQUALS, "7", property="$.rows[7].id"): True,
        of_json(Comparison.EQUALS, "8", property="$['rows'][7].id"): False,
        of_json(Comparison.EQUALS, "200000", property="$.rows.length"): True,
        of_json(Comparison.NOT_NULL, property="$.rows[*].id"): True,
        of_json(Comparison.IS_NULL, property="$.none.of.these"): True,
        of_json(Comparison.GREATER_THAN, "5", property="$.n"): True,
        of_json(Comparison.HAS_KEY, "odd", property="$"): True,
        an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "1e400"): True,
    }
    assert len(ROWS) > HUGE_CHARS
    async with http_origin(JSON) as origin, a_context() as ctx:
        outcome = await run(origin.url(), ctx, assertions)
        assert ctx.network.judging.pid is not None
    assert [one.error is None for one in outcome.assertions] == list(assertions.values())
    msgspec.json.encode(outcome)


async def test_a_judging_process_that_ends_is_no_failure_of_the_check() -> None:
    async with http_origin(TEXT) as origin, a_context() as ctx:
        judging = ctx.network.judging
        assert (await run(origin.url(), ctx, [HAS_WORD])).status is Status.PASSED
        judging.kill()
        with pytest.raises(JudgingBrokeError):
            await run(origin.url(), ctx, [HAS_WORD])
        assert (await run(origin.url(), ctx, [HAS_WORD])).status is Status.PASSED
        assert ctx.network.bodies.held_bytes == 0


async def test_the_judging_process_ends_when_it_has_nothing_to_judge() -> None:
    judging = JudgingProcess(idle_s=0.01)
    seen = Observation(facts={Source.STATUS_CODE: Number(200), Source.TEXT_BODY: Text("word")})
    try:
        outcome = await judging.judge(an_api_spec(assertions=(HAS_WORD,)), seen)
        assert outcome.status is Status.PASSED
        await until(lambda: judging.pid is None)
    finally:
        judging.close()


def test_the_judging_process_ends_with_the_agent() -> None:
    command = [sys.executable, "-m", "runners.judging.judge_child"]
    subprocess.run(command, input=b"", timeout=LONG_S, check=True)


async def test_what_lies_behind_the_limit_is_not_green() -> None:
    page = reply(b"x" * READ_LIMIT_BYTES + b"error", content_type="text/plain")
    absent = an_assertion(Source.TEXT_BODY, Comparison.NOT_CONTAINS, "error")
    there = an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "error")
    async with http_origin(page) as origin, a_context() as ctx:
        outcome = await run(origin.url(), ctx, [absent, there])
    assert outcome.status is Status.FAILED
    assert all(f"irst {READ_LIMIT_BYTES} bytes" in (one.error or "") for one in outcome.assertions)
