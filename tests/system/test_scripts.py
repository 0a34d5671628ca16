"""An agent as a process, and API checks with scripts: claimed, run, scrubbed, nothing left."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.checks import Lane
from contract.result import Status
from tests.builders.agent_process import AgentProcess, Target
from tests.builders.agents import until
from tests.builders.scripts import runtimes_here
from tests.builders.specs import a_job, an_api_spec
from tests.fakes.service import FakeService

SCRIPT = """
process.env.SERVICE_SECRET_KEY = 'fresh-t0ken';
console.log(process.ppid, process.env.CHECK_NAME, process.env.REGION, process.env.API_KEY);
console.log(process.env.SERVICE_SECRET_KEY);
"""


@pytest.fixture
async def service() -> AsyncIterator[FakeService]:
    async with FakeService() as fake:
        yield fake


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as page:
        yield page


def children_of(pid: int) -> list[str]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return path.read_text().split() if path.exists() else []


def is_there(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_an_api_check_with_a_script_runs_and_its_secret_stays(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    spec = an_api_spec(target.url, setup_script=SCRIPT)
    service.offer(a_job(spec, deadline_s=240))
    runtimes = runtimes_here().get(None).modules.parents[1]
    async with AgentProcess(service, tmp_path, {"PICKET_RUNTIMES": str(runtimes)}) as agent:
        await service.until(lambda: len(service.results) == 1)
        (result,) = service.results
        pid, *words = result.outcome.log[0].message.split()
        await until(lambda: children_of(int(pid)))
        waiting = children_of(int(pid))
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0
    await until(lambda: not any(map(is_there, waiting)))
    assert result.outcome.status is Status.PASSED, result.outcome.failure
    assert words == ["Front", "page", "cellar", "undefined"]
    assert result.outcome.log[1].message == "*********"


async def test_an_agent_without_a_runtime_leaves_such_checks_to_others(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(a_job(an_api_spec(target.url, setup_script=SCRIPT), job_id="scripted"))
    service.offer(a_job(an_api_spec(target.url), job_id="plain"))
    environ = {"PICKET_RUNTIMES": str(tmp_path)}
    async with AgentProcess(service, tmp_path, environ) as agent:
        await service.until(lambda: len(service.results) == 1)
        await agent.logged("scripts.unavailable")
    assert [one.job_id for one in service.results] == ["plain"]
    assert service.released == []
    assert service.hellos[0].slots[Lane.MAIN] == 0
