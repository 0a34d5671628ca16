"""Whatever a real agent says, and however it ends, holds no secret of its environment."""

import asyncio
import base64
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.builders.agent_process import ROOT, AgentProcess
from tests.fakes.service import KEY, FakeService, Fault

TOKEN = "t0ken/of+the&agent"

SECRETS = {"SERVICE_SECRET_TOKEN": TOKEN}
FORMS = (TOKEN, "t0ken%2Fof%2Bthe%26agent", base64.b64encode(TOKEN.encode()).decode(), KEY)


@pytest.fixture
async def service() -> AsyncIterator[FakeService]:
    async with FakeService() as fake:
        yield fake


def assert_silent(text: str) -> None:
    assert [form for form in FORMS if form in text] == []


async def test_what_the_service_says_reaches_the_logs_without_secrets(
    service: FakeService, tmp_path: Path
) -> None:
    said = f"Not {TOKEN} nor {FORMS[1]} nor {FORMS[2]} nor {KEY}."
    service.fail("hello", Fault(status=426, message=said))
    async with AgentProcess(service, tmp_path, SECRETS) as agent:
        assert await agent.exit_code() == 3
    assert "Not *********" in agent.output()
    assert_silent(agent.output())


async def test_what_is_asked_of_the_health_port_is_answered_without_secrets(
    service: FakeService, tmp_path: Path
) -> None:
    async with AgentProcess(service, tmp_path, SECRETS) as agent:
        (line,) = await listening(agent)
        address = f"http://127.0.0.1:{line['port']}"
        paths = (f"/{FORMS[1]}", f"/{FORMS[2]}", f"/{KEY}", "/metrics", "/health")
        async with aiohttp.ClientSession() as session:
            for path in paths:
                async with session.get(address + path) as answer:
                    assert_silent(await answer.text())


async def listening(agent: AgentProcess) -> list[dict[str, int]]:
    await agent.logged("agent.ready")
    found: list[dict[str, int]] = agent.events("health.listening")
    return found


@pytest.mark.parametrize("how", [signal.SIGABRT, signal.SIGSEGV])
async def test_a_crash_dump_holds_no_secret_and_leaves_no_core(
    service: FakeService, tmp_path: Path, how: signal.Signals
) -> None:
    environ = {**SECRETS, "PYTHONFAULTHANDLER": "1"}
    async with AgentProcess(service, tmp_path, environ) as agent:
        await agent.logged("agent.ready")
        limits = resource.prlimit(agent.process.pid, resource.RLIMIT_CORE)
        agent.process.send_signal(how)
        assert await agent.exit_code() == -how
        await asyncio.sleep(0.1)
    assert limits == (0, 0)
    assert any(line.startswith("Fatal Python error") for line in agent.errors)
    assert_silent(agent.output() + "\n".join(agent.errors))


BREAKS = f"""
import gc, os, threading
from agent import last_words
last_words.guard(os.environ)
secret = os.environ["SERVICE_SECRET_TOKEN"]
def broken(): raise ValueError(f"in a thread: {{secret}} {FORMS[2]}")
thread = threading.Thread(target=broken); thread.start(); thread.join()
class Loose:
    def __del__(self): raise ValueError(f"in a finaliser: {{secret}}")
loose = Loose(); del loose; gc.collect()
raise ValueError(f"at the end: {{secret}} {FORMS[1]} {{os.environ['API_KEY']}}")
"""


def test_tracebacks_of_threads_finalisers_and_the_end_hold_no_secret() -> None:
    environ = {**SECRETS, "API_KEY": KEY, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BREAKS], env=environ, capture_output=True, text=True, check=False
    )
    for place in ("in a thread: *********", "in a finaliser: *********", "at the end: *********"):
        assert place in done.stdout
    assert_silent(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "words", [["--help"], ["agent", "--help"], ["run", "--debug", "/none.yaml"]]
)
def test_the_command_line_tells_no_secret(words: list[str]) -> None:
    environ = {**SECRETS, "API_KEY": KEY, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "picket", *words],
        env=environ, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout + done.stderr
    assert_silent(done.stdout + done.stderr)
