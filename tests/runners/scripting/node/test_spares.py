"""Spares: a process for each script, a few waiting, none lent twice, none left over."""

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runners.scripting.harness import Harness, open_harness
from runners.scripting.node.protocol import ScriptJob, ScriptRequest
from runners.scripting.node.run import ScriptRunner
from runners.scripting.node.runtimes import Runtime
from tests.builders.agents import until
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here

REQUEST = ScriptRequest(
    method="GET", url="http://shop.test/", body="", headers={}, query_parameters={}
)


@contextlib.asynccontextmanager
async def a_harness(spares: int = 2) -> AsyncIterator[Harness]:
    async with open_harness(runtimes_here(), spares=spares) as harness:
        assert harness is not None, "no runtime is installed: run `make test`"
        yield harness


def a_script(harness: Harness, script: str = "console.log(process.pid);") -> ScriptJob:
    return ScriptJob(
        file="setup.js",
        phase="setup",
        script=script,
        env={},
        secret_names=(),
        region="cellar",
        request=REQUEST,
        response=None,
        snippets={},
        modules=str(newest(harness).modules),
    )


def newest(harness: Harness) -> Runtime:
    return harness.runtimes.get(None)


async def pid_of_a_run(harness: Harness) -> int:
    async with ScriptRunner(harness, newest(harness), add_secret=lambda _: None) as runner:
        ran = await runner.run(a_script(harness), limit_s=LONG_S, limit="its limit")
    return int(ran.log[0].message)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_nothing_waits_before_the_first_script() -> None:
    async with a_harness() as harness:
        assert harness.node_pool.waiting == 0


async def test_after_a_script_as_many_wait_as_are_wanted() -> None:
    async with a_harness(spares=2) as harness:
        await pid_of_a_run(harness)
        await until(lambda: harness.node_pool.waiting == 2)


async def test_no_process_runs_two_scripts_and_each_is_gone_after_its_own() -> None:
    async with a_harness() as harness:
        seen = [await pid_of_a_run(harness) for _ in range(4)]
        await until(lambda: not any(map(is_there, seen)))
    assert len(set(seen)) == 4


async def test_a_spare_that_died_costs_no_script() -> None:
    async with a_harness(spares=1) as harness:
        await pid_of_a_run(harness)
        await until(lambda: harness.node_pool.waiting == 1)
        (node,) = harness.node_pool._waiting[newest(harness).id]
        os.kill(node._child._pid, 9)
        assert await pid_of_a_run(harness) > 0


async def test_spares_of_a_runtime_that_nobody_uses_are_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_harness() as harness:
        await pid_of_a_run(harness)
        await until(lambda: harness.node_pool.waiting == 2)
        monkeypatch.setattr("runners.scripting.node.node_pool.IDLE_S", 0.0)
        harness.node_pool._ended.set()
        await until(lambda: harness.node_pool.waiting == 0)


async def test_nothing_waits_when_the_harness_is_closed() -> None:
    async with a_harness() as harness:
        await pid_of_a_run(harness)
        await until(lambda: harness.node_pool.waiting == 2)
        nodes = list(harness.node_pool._waiting[newest(harness).id])
        pids, folders = [one._child._pid for one in nodes], [one._folder for one in nodes]
    assert not any(map(is_there, pids))
    assert not any(folder.has_folder for folder in folders)


async def test_a_script_that_lives_on_ends_with_its_run() -> None:
    async with a_harness() as harness:
        forged = """
            console.log(process.pid);
            const done = { fact: 'done', env: {}, printed: false };
            process.getBuiltinModule('fs').writeSync(3, JSON.stringify(done) + '\\n');
            for (;;);"""
        async with ScriptRunner(harness, newest(harness), add_secret=lambda _: None) as runner:
            ran = await runner.run(a_script(harness, forged), limit_s=LONG_S, limit="its limit")
        await until(lambda: not is_there(int(ran.log[0].message)))
