"""The agent as a process: its exit codes, its signals, and nothing lost."""

import asyncio
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from contract.agent_api import ReleaseReason
from contract.checks import Lane
from contract.job import Job
from contract.result import Status
from tests.builders.agent_process import AgentProcess, Target
from tests.builders.agents import files, ids, until
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_url_spec
from tests.fakes.service import KEY, FakeService, Fault


@pytest.fixture
async def service() -> AsyncIterator[FakeService]:
    async with FakeService() as fake:
        yield fake


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as page:
        yield page


def jobs(target: Target, count: int, *, path: str = "/") -> list[Job]:
    spec = a_url_spec(target.url + path)
    return [a_job(spec, job_id=f"job-{number}", deadline_s=600) for number in range(count)]


async def test_bad_settings_are_one_line_each_and_exit_2(tmp_path: Path) -> None:
    environ = {"AGENT_HEALTH_PORT": "99999", "LOG_LEVEL": "loud", "API_KEY": ""}
    async with AgentProcess("http://127.0.0.1:9", tmp_path, environ) as agent:
        assert await agent.exit_code() == 2
    assert agent.errors == [
        "API_KEY is not set; use the key of a private location, which begins with pl_",
        "AGENT_HEALTH_PORT is 99999; use 0 to 65535",
        "LOG_LEVEL is loud; use DEBUG, INFO, LOG, WARN or ERROR",
    ]
    assert agent.lines == []


async def test_a_key_of_the_public_api_is_told_as_such_and_not_shown(tmp_path: Path) -> None:
    environ = {"API_KEY": "cu_0f9e8d7c6b5a"}
    async with AgentProcess("http://127.0.0.1:9", tmp_path, environ) as agent:
        assert await agent.exit_code() == 2
    (line,) = agent.errors
    assert line.endswith("use the key of a private location, which begins with pl_")
    assert "0f9e8d7c6b5a" not in line


async def test_a_misspelt_setting_is_logged_with_the_nearest_name_and_no_value(
    service: FakeService, tmp_path: Path
) -> None:
    environ = {"AGENT_HEALTH_PROT": "what-nobody-reads"}
    async with AgentProcess(service, tmp_path, environ) as agent:
        await agent.logged("agent.ready")
    (line,) = agent.events("settings.unknown")
    assert (line["level"], line["name"]) == ("warn", "AGENT_HEALTH_PROT")
    assert line["did_you_mean"] == "AGENT_HEALTH_PORT"
    assert "what-nobody-reads" not in agent.output()


async def test_a_taken_port_is_one_line_and_exit_2(service: FakeService, tmp_path: Path) -> None:
    taken = service.url.rsplit(":", 1)[1]
    environ = {"AGENT_HEALTH_PORT": taken}
    async with AgentProcess(service, tmp_path, environ) as agent:
        assert await agent.exit_code() == 2
    (line,) = agent.errors
    assert line.startswith(f"AGENT_HEALTH_PORT is {taken}, but ")


async def test_missing_roots_are_one_line_and_exit_2(service: FakeService, tmp_path: Path) -> None:
    environ = {"SSL_CERT_FILE": "/nonexistent.pem"}
    async with AgentProcess(service, tmp_path, environ) as agent:
        assert await agent.exit_code() == 2
    assert agent.errors == ["SSL_CERT_FILE is /nonexistent.pem, which is not a file."]
    assert service.hellos == []


async def test_secrets_that_cannot_be_hidden_are_named(
    service: FakeService, tmp_path: Path
) -> None:
    environ = {
        "SERVICE_SECRET_PIN": "q7z",
        "SERVICE_SECRET_MODE": "true",
        "SERVICE_SECRET_TOKEN": "long-enough",
    }
    async with AgentProcess(service, tmp_path, environ) as agent:
        await agent.logged("agent.ready")
    named = [line["variable"] for line in agent.events("secret.not_hidden")]
    assert named == ["SERVICE_SECRET_MODE", "SERVICE_SECRET_PIN"]
    assert "q7z" not in agent.output()


async def test_a_refused_key_is_exit_3(service: FakeService, tmp_path: Path) -> None:
    wrong = "pl_wrong_key_of_nobody"
    async with AgentProcess(service, tmp_path, {"API_KEY": wrong}) as agent:
        assert await agent.exit_code() == 3
    (line,) = agent.events("agent.refused")
    assert line["because"] == "The service answered 401: The key is not known."
    assert wrong not in agent.output()


async def test_a_refused_version_is_exit_3(service: FakeService, tmp_path: Path) -> None:
    service.fail("hello", Fault(status=426, message="Use version 2 or later."))
    async with AgentProcess(service, tmp_path) as agent:
        assert await agent.exit_code() == 3
    assert "Use version 2 or later." in agent.events("agent.refused")[0]["because"]


async def test_checks_run_and_their_results_arrive(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 50))
    async with AgentProcess(service, tmp_path, {"LOG_LEVEL": "DEBUG"}) as agent:
        await service.until(lambda: len(service.results) == 50)
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0
    assert {result.outcome.status for result in service.results} == {Status.PASSED}
    assert service.book.duplicates == []
    assert KEY not in agent.output()
    assert service.hellos[0].slots[Lane.UPTIME] == 256


async def test_a_malformed_job_is_released_and_the_loop_goes_on(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer_raw(b'{"jobId":"bad","fence":"@fence"}', job_id="bad")
    service.offer_raw(b"42", job_id="headless")
    service.offer(*jobs(target, 1))
    async with AgentProcess(service, tmp_path):
        await service.until(lambda: bool(service.results and service.released))
        service.offer(a_job(a_url_spec(target.url), job_id="later"))
        await service.until(lambda: len(service.results) == 2)
    assert [(job.job_id, job.reason) for job in service.released] == [
        ("bad", ReleaseReason.MALFORMED)
    ]


async def test_the_first_signal_lets_checks_finish(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 2, path="/slow"))
    async with AgentProcess(service, tmp_path) as agent:
        await until(lambda: target.waiting == 2)
        assert await agent.health("/-/readiness") == 200
        agent.signal(signal.SIGTERM)
        await agent.logged("agent.draining")
        assert await agent.health("/-/readiness") == 503
        assert await agent.health("/-/liveness") == 200
        service.offer(a_job(a_url_spec(target.url), job_id="too-late"))
        target.release.set()
        assert await agent.exit_code() == 0
    assert ids(service.results) == {"job-0", "job-1"}
    assert service.book.entries["too-late"].fence == 0


async def test_an_idle_agent_stops_at_once_on_ctrl_c(service: FakeService, tmp_path: Path) -> None:
    async with AgentProcess(service, tmp_path) as agent:
        await service.until(lambda: bool(service.claims))
        agent.signal(signal.SIGINT)
        assert await agent.exit_code() == 0
    assert service.released == []


async def test_the_second_signal_gives_back_what_runs(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 2, path="/slow"))
    async with AgentProcess(service, tmp_path) as agent:
        await until(lambda: target.waiting == 2)
        agent.signal(signal.SIGTERM)
        await agent.logged("agent.draining")
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0
    assert {job.reason for job in service.released} == {ReleaseReason.DRAINING}
    assert service.book.waiting() == 2
    assert service.results == []


async def test_the_third_signal_exits_at_once(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 1, path="/slow"))
    service.fail_always("release", Fault(delay_s=30))
    async with AgentProcess(service, tmp_path) as agent:
        await until(lambda: target.waiting == 1)
        for event in ("agent.draining", "agent.cancelling"):
            agent.signal(signal.SIGTERM)
            await agent.logged(event)
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 1


async def test_checks_that_outlast_the_grace_are_given_back(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 1, path="/slow"))
    async with AgentProcess(service, tmp_path, {"SHUTDOWN_GRACE_S": "0.2"}) as agent:
        await until(lambda: target.waiting == 1)
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0
    assert [job.reason for job in service.released] == [ReleaseReason.DRAINING]


async def test_a_killed_agent_loses_no_job(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 3, path="/slow"))
    async with AgentProcess(service, tmp_path / "first") as first:
        await until(lambda: target.waiting == 3)
        first.signal(signal.SIGKILL)
        await first.exit_code()
    for entry in service.book.leased.values():
        entry.leased_until = 0  # their time is up
    target.release.set()
    async with AgentProcess(service, tmp_path / "second"):
        await service.until(lambda: len(service.results) == 3)
    assert {result.fence for result in service.results} == {2}


async def test_a_service_that_dies_and_comes_back_gets_every_result_once(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 20, path="/slow"))
    async with AgentProcess(service, tmp_path):
        await until(lambda: target.waiting == 20)
        await service.down()
        target.release.set()
        await until(lambda: files(tmp_path / "results"))
        await service.up()
        await service.until(lambda: len(service.results) == 20)
        service.offer(a_job(a_url_spec(target.url), job_id="after"))
        await service.until(lambda: len(service.results) == 21)
    assert service.book.duplicates == []
    assert service.book.late == []


async def test_results_of_a_stopped_agent_are_delivered_by_the_next_one(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.offer(*jobs(target, 5, path="/slow"))
    async with AgentProcess(service, tmp_path) as first:
        await until(lambda: target.waiting == 5)
        service.fail_always("results", Fault(status=503))
        first.signal(signal.SIGTERM)
        target.release.set()
        assert await first.exit_code() == 0
    assert service.results == []
    service.heal()
    async with AgentProcess(service, tmp_path):
        await service.until(lambda: len(service.results) == 5)
        await until(lambda: files(tmp_path / "results") == [])


async def test_an_agent_without_its_service_turns_unready_and_stays_live(
    service: FakeService, tmp_path: Path
) -> None:
    async with AgentProcess(service, tmp_path, {"AGENT_READY_GRACE_S": "0"}) as agent:
        await agent.logged("agent.ready")
        assert await agent.health("/-/readiness") == 200
        await service.down()
        await _turns(agent, 503)
        assert await agent.health("/-/liveness") == 200
        await service.up()
        await _turns(agent, 200)


async def test_an_agent_waits_for_a_service_that_is_not_there_yet(
    service: FakeService, tmp_path: Path
) -> None:
    await service.down()
    async with AgentProcess(service, tmp_path) as agent:
        await agent.logged("service.away")
        assert await agent.health("/-/readiness") == 503
        assert await agent.health("/-/liveness") == 200
        await service.up()
        await agent.logged("agent.ready")
        await service.down()
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0


async def test_a_key_refused_later_makes_unready_and_ends_nothing(
    service: FakeService, tmp_path: Path
) -> None:
    async with AgentProcess(service, tmp_path) as agent:
        await agent.logged("agent.ready")
        await service.until(lambda: bool(service.claims))
        service.fail_always("claim", Fault(status=401))
        service.fail_always("hello", Fault(status=401))
        service.offer_raw(b"42", job_id="wakes the poll")
        await _turns(agent, 503)
        service.heal()
        await _turns(agent, 200)


async def test_without_a_writable_folder_the_agent_works_from_memory(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    service.offer(*jobs(target, 1))
    async with AgentProcess(service, tmp_path / "file" / "data") as agent:
        await service.until(lambda: len(service.results) == 1)
        await agent.logged("spool.memory_only")


async def test_leases_of_long_checks_are_renewed(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    async with AgentProcess(service, tmp_path):
        # A machine that stands still for longer than a lease loses it: then with a longer one.
        for number, lease_s in enumerate((1.2, 6, 24)):
            service.book.lease_s[Lane.UPTIME] = lease_s
            target.release.clear()
            renewed = len(service.renewals)
            service.offer(a_job(a_url_spec(f"{target.url}/slow"), job_id=f"long-{number}"))
            await service.until(partial(has_renewed, service, renewed + 4))
            target.release.set()
            await service.until(lambda: f"long-{number}" in ids(service.results))  # noqa: B023
            if service.results[-1].fence == 1:
                break
    assert service.results[-1].fence == 1


def has_renewed(service: FakeService, times: int) -> bool:
    return len(service.renewals) >= times


async def test_a_cancelled_check_ends_and_is_given_back(
    service: FakeService, target: Target, tmp_path: Path
) -> None:
    service.book.lease_s[Lane.UPTIME] = 6
    service.offer(*jobs(target, 1, path="/slow"))
    async with AgentProcess(service, tmp_path):
        await until(lambda: target.waiting == 1)
        service.book.to_cancel.add("job-0")
        await service.until(lambda: bool(service.released))
    assert [job.reason for job in service.released] == [ReleaseReason.CANCELLED]


async def _turns(agent: AgentProcess, status: int) -> None:
    async with asyncio.timeout(LONG_S):
        while await agent.health("/-/readiness") != status:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
