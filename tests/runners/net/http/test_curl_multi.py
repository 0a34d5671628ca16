"""The engine on both event loops: nothing is left behind, nothing is mixed up."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from contract.requests import HttpRequest
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from tests.builders.patience import LONG_S, descriptors, eventually
from tests.builders.specs import an_http_request
from tests.servers.http_origin import (
    Asked,
    begins,
    http_origin,
    redirect,
    reply,
    resets_after,
    silence,
)

Scene = Callable[[HttpEngine], Awaitable[None]]


def play(scene: Scene, loop: str) -> None:
    """Run the scene on a loop of this kind and see that it leaves nothing open."""

    async def main() -> None:
        async with HttpEngine(EgressRules()) as engine:
            await scene(engine)
            assert engine.running == 0

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(asyncio.sleep(0))  # the first loop of a kind keeps some descriptors for good
    before = len(descriptors())
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    # A thread closes libcurl's, and looks names up: on a slow machine after the loop has ended.
    eventually(lambda: len(descriptors()) <= before)


both_loops = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


@both_loops
def test_exchanges_of_every_outcome_run_side_by_side(loop: str) -> None:
    pages = {
        "/fine": reply(),
        "/loop": redirect("/loop"),
        "/once": redirect("/fine"),
        "/reset": resets_after(b""),
        "/hangs": silence,
        "/stalls": begins(reply(b"half", length=8)),
    }
    expected = {
        "/fine": None,
        "/once": None,
        "/loop": "REDIRECT",
        "/reset": "CONNECT",
        "/hangs": "TIMEOUT",
        "/stalls": "TIMEOUT",
    }

    async def scene(engine: HttpEngine) -> None:
        async with http_origin(pages) as origin:

            async def one(path: str) -> str | None:
                request = an_http_request(origin.url(path))
                timeout_s = 1 if expected[path] == "TIMEOUT" else LONG_S
                failure = (await engine.exchange(request, timeout_s=timeout_s)).failure
                return None if failure is None else failure.kind.value

            paths = list(pages) * 15
            assert await asyncio.gather(*map(one, paths)) == [expected[path] for path in paths]

    play(scene, loop)


@both_loops
def test_a_cancelled_exchange_leaves_no_connection(loop: str) -> None:
    async def scene(engine: HttpEngine) -> None:
        asked = asyncio.Event()

        async def page(_: Asked, __: asyncio.StreamWriter) -> None:
            asked.set()
            await asyncio.sleep(60)

        async with http_origin(page) as origin:
            task = asyncio.create_task(engine.exchange(an_http_request(origin.url()), timeout_s=30))
            await asked.wait()
            assert engine.running == 1
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert engine.running == 0
            assert origin.connections == 1

    play(scene, loop)


@both_loops
def test_an_exchange_may_be_cancelled_before_it_has_begun(loop: str) -> None:
    async def scene(engine: HttpEngine) -> None:
        async with http_origin(reply()) as origin:
            request = an_http_request(origin.url())
            tasks = [asyncio.create_task(engine.exchange(request, timeout_s=30)) for _ in range(50)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        kinds = [isinstance(one, asyncio.CancelledError) for one in ended]
        assert kinds == [True, False] * 25

    play(scene, loop)


@both_loops
def test_closing_the_engine_ends_what_is_under_way(loop: str) -> None:
    async def main() -> None:
        async with http_origin(silence) as origin:
            engine = HttpEngine(EgressRules())
            await engine.start()
            request: HttpRequest = an_http_request(origin.url())
            task = asyncio.create_task(engine.exchange(request, timeout_s=30))
            while not origin.asked:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.005)
            await engine.close()
            with pytest.raises(asyncio.CancelledError):
                await task

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


@both_loops
def test_names_are_looked_up_without_holding_the_loop(loop: str) -> None:
    async def scene(engine: HttpEngine) -> None:
        async with http_origin(reply()) as origin:
            known, unknown = f"http://localhost:{origin.port}/", "http://nowhere.invalid/"
            asked = [*[(known, LONG_S)] * 20, *[(unknown, 5.0)] * 20]
            exchanges = [engine.exchange(an_http_request(url), timeout_s=s) for url, s in asked]
            seen = await asyncio.gather(*exchanges)
        assert [one.failure is None for one in seen] == [True] * 20 + [False] * 20

    play(scene, loop)


async def test_an_engine_that_is_not_started_says_so() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        await HttpEngine(EgressRules()).exchange(
            an_http_request("http://127.0.0.1:9/"), timeout_s=1
        )
