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

from contract.checks import ApiSpec, BrowserSpec, Lane
from contract.job import Job, RunSource
from contract.result import Status
from contract.wire import encode
from tests.builders.agent_process import ROOT, AgentProcess
from tests.builders.archives import read_members
from tests.builders.scripts import runtimes_here
from tests.builders.specs import a_job, a_variable, an_api_spec, an_http_request
from tests.builders.suites import SUITES
from tests.fakes.service import KEY, FakeService, Fault
from tests.servers.echoing_site import echoing_site

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
from agent.crash_hooks import install_crash_hooks
install_crash_hooks(os.environ)
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


SCRIPTED_S = 240.0
"""The agent tries Node, a browser and a suite before it takes checks with scripts."""
SESSION = "session-of-nobody"
SENDS_SESSION = (
    f"await request.get(`${{SITE}}/echo`, {{ headers: {{ 'X-Session': '{SESSION}' }} }});"
)
SETUP = """
const secret = process.env.SERVICE_SECRET_TOKEN;
if (secret.length !== LENGTH) throw new Error('The setup script does not see the secret.');
console.log(secret, { secret }, encodeURIComponent(secret), btoa(secret));
process.stdout.write(`${secret}\\n`);
process.env.COPY = secret;
request.headers['x-token'] = encodeURIComponent(secret);
request.headers.authorization = `Bearer ${btoa(secret)}`;
request.queryParameters.q = secret;
request.body = JSON.stringify({ secret, copy: process.env.COPY });
""".replace("LENGTH", str(len(TOKEN)))
TEARDOWN = """
console.log(response.body, process.env.COPY);
throw new Error(`torn down with ${process.env.SERVICE_SECRET_TOKEN}`);
"""


def spendthrift_jobs(site: str) -> tuple[Job, Job]:
    """Their scripts read the agent's secret, and send it in every way that there is."""
    echoes = an_http_request(f"{site}/echo", method="POST")
    api: ApiSpec = an_api_spec(request=echoes, setup_script=SETUP, teardown_script=TEARDOWN)
    echoing = (SUITES / "echoing/echo.spec.js").read_text()
    script = echoing.replace("throw new", f"{SENDS_SESSION}\n  throw new")
    asked_for = {"run_source": RunSource.TRIGGER_API, "deadline_s": SCRIPTED_S}
    variables = (a_variable("SITE", site),)
    return (
        a_job(api, job_id="api", **asked_for),
        a_job(BrowserSpec(script=script), job_id="browser", variables=variables, **asked_for),
    )


def unpacked(content: bytes) -> list[bytes]:
    """A file, and all that is in it if it is an archive."""
    members = read_members(content).values() if content.startswith(b"PK\3\4") else ()
    return [content, *(inner for member in members for inner in unpacked(member))]


def offspring(pid: int) -> list[int]:
    """All processes that descend from this one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return []
    return [found for child in map(int, children) for found in (child, *offspring(child))]


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or is of another user, from whom it is hidden by that
        return b""


@pytest.mark.timeout(600)
async def test_what_a_script_does_with_a_secret_of_the_agent_stays_with_the_agent(
    service: FakeService, tmp_path: Path
) -> None:
    runtimes = str(runtimes_here().get(None).modules.parents[1])
    more = {"PICKET_RUNTIMES": runtimes, "AGENT_SENSITIVE_HEADERS": "Cookie, X-Session"}
    environ = {**SECRETS, **more}
    async with echoing_site() as site, AgentProcess(service, tmp_path, environ) as agent:
        await service.until(
            lambda: any(hello.slots.get(Lane.MAIN) for hello in service.hellos),
            timeout_s=SCRIPTED_S,
        )
        waiting = offspring(agent.process.pid)
        assert waiting
        assert not any(TOKEN.encode() in environment_of(pid) for pid in waiting)
        service.offer(*spendthrift_jobs(site))
        await service.until(lambda: len(service.results) == 2, timeout_s=SCRIPTED_S)
        agent.signal(signal.SIGTERM)
        assert await agent.exit_code() == 0
    outcomes = {one.job_id: one.outcome for one in service.results}
    for name, outcome in outcomes.items():
        assert outcome.status is Status.FAILED, name
        assert "*********" in str(outcome.failure), outcome.failure
        assert_silent(encode(outcome).decode())
    assert_silent(agent.output())
    traces = [held for name, held in service.artifacts.items() if name.endswith(".zip")]
    assert any(b"X-Session" in inner for held in traces for inner in unpacked(held))
    for artifact in service.artifacts.values():
        for content in unpacked(artifact):
            assert_silent(content.decode("latin-1"))
            assert SESSION.encode() not in content
