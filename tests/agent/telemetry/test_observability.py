"""Error reports hold five facts and nothing else, and none are made when switched off."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import msgspec
import pytest

from agent.api_client.client import ServiceClient, ServiceEndpoint
from agent.api_client.errors import KeyRefusedError, ServiceAwayError
from agent.api_client.proxies import Proxy
from agent.telemetry.error_reports import (
    REPORTS_PER_MINUTE,
    SAME_ERROR_S,
    AgentFacts,
    ErrorReporter,
    NoReporter,
)
from contract.agent_api import EVENTS, ErrorEvent, Events
from tests.fakes.service import KEY, FakeService
from tests.servers.recording_proxy import RecordingProxy

FACTS = AgentFacts(agent_version="1.2.3", platform="linux-x86_64", runtime_version="cpython-3.11.7")
ENVIRONMENT = {
    "API_KEY": "pl_plantedKEY123456",
    "SERVICE_SECRET_DB": "plänted s3cret/+",
    "TENANT": "planted-tenant",
    "HTTPS_PROXY": "http://planted-user:planted-pass@proxy.planted.example:3128",
}
PLANTED = [
    *ENVIRONMENT.values(),
    "https://planted.example/path?planted=query",
    "planted.example",
    "Authorization",
    "planted-header-value",
    "planted-cookie",
    "planted response body",
    "planted-config",
    "10.77.88.99",
    "cu_plantedkey1234",
]


class Book:
    """A sink that keeps what it gets."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.events: list[ErrorEvent] = []
        self.problem = problem
        self.sends = 0

    async def send_events(self, events: Events) -> None:
        self.sends += 1
        if self.problem is not None:
            raise self.problem
        self.events.extend(events.events)


class Standing:
    """Whoever else watches the agent's requests; nobody here."""

    def service_answered(self) -> None:
        pass

    def service_away(self) -> None:
        pass

    def service_refused(self, because: str) -> None:
        pass

    def service_request(self, call: str, status: str) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def reporter(book: Book, clock: Clock) -> ErrorReporter:
    return ErrorReporter(book, FACTS, environment=ENVIRONMENT, clock=clock)


@pytest.fixture
async def running(reporter: ErrorReporter) -> AsyncIterator[None]:
    task = asyncio.create_task(reporter.run(), name="reporter")
    yield
    task.cancel()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def fail(text: object) -> None:
    raise RuntimeError(f"the request failed with {text}")


def crash(text: object) -> RuntimeError:
    with pytest.raises(RuntimeError) as caught:
        fail(text)
    return caught.value


async def test_a_report_is_the_five_facts(
    reporter: ErrorReporter, book: Book, running: None
) -> None:
    reporter.note("job.crashed", crash("hunter2"))
    await settle()
    (event,) = book.events
    fields = msgspec.to_builtins(event)
    assert set(fields) == {
        "message",
        "stackTrace",
        "agentVersion",
        "platform",
        "runtimeVersion",
    }
    assert event.message == "job.crashed: RuntimeError: the request failed with …"
    assert "test_observability.py" in event.stack_trace
    assert (event.agent_version, event.platform) == ("1.2.3", "linux-x86_64")
    assert event.runtime_version == "cpython-3.11.7"


@pytest.mark.parametrize("planted", PLANTED)
async def test_nothing_of_the_surroundings_is_in_either_text(
    reporter: ErrorReporter, book: Book, running: None, planted: str
) -> None:
    reporter.note(f"said {planted}", crash(planted))
    await settle()
    (event,) = book.events
    assert planted not in event.message
    assert planted not in event.stack_trace


async def test_an_environment_value_is_taken_out_even_when_it_is_a_word_of_ours(
    book: Book, clock: Clock
) -> None:
    reporter = ErrorReporter(book, FACTS, environment={"MODE": "crashed"}, clock=clock)
    task = asyncio.create_task(reporter.run(), name="reporter")
    reporter.note("job.crashed", None)
    await settle()
    task.cancel()
    assert "crashed" not in book.events[0].message


async def test_the_same_error_is_sent_once_a_minute(
    reporter: ErrorReporter, book: Book, clock: Clock, running: None
) -> None:
    error = crash("x")
    for _ in range(20):
        reporter.note("job.crashed", error)
    await settle()
    assert len(book.events) == 1
    clock.now += SAME_ERROR_S
    reporter.note("job.crashed", error)
    await settle()
    assert len(book.events) == 2


async def test_a_storm_of_different_errors_is_bounded(
    reporter: ErrorReporter, book: Book, clock: Clock, running: None
) -> None:
    for number in range(200):
        reporter.note(f"storm.number_{number}", None)
        await settle()
    assert len(book.events) == REPORTS_PER_MINUTE
    clock.now += 60
    reporter.note("storm.over", None)
    await settle()
    assert book.events[-1].message == "storm.over"


async def test_notes_wait_in_a_bounded_queue(book: Book, clock: Clock) -> None:
    reporter = ErrorReporter(book, FACTS, environment={}, clock=clock)
    for number in range(500):
        clock.now += 60
        reporter.note(f"storm.number_{number}", None)
    task = asyncio.create_task(reporter.run(), name="reporter")
    for _ in range(20):
        await settle()
    task.cancel()
    assert [event.message for event in book.events] == [f"storm.number_{n}" for n in range(64)]


async def test_any_thread_may_take_note(reporter: ErrorReporter, book: Book, running: None) -> None:
    await settle()
    asyncio.get_running_loop().set_debug(True)  # it tells whoever calls from elsewhere
    await asyncio.to_thread(reporter.note, "health.broke", None)
    await settle()
    assert [event.message for event in book.events] == ["health.broke"]


@pytest.mark.parametrize("problem", [ServiceAwayError("no"), KeyRefusedError("no"), TimeoutError()])
async def test_a_report_that_fails_is_forgotten_and_the_next_one_goes(
    reporter: ErrorReporter, book: Book, running: None, problem: Exception
) -> None:
    book.problem = problem
    reporter.note("job.crashed", crash("x"))
    await settle()
    book.problem = None
    reporter.note("job.other", None)
    await settle()
    assert [event.message for event in book.events] == ["job.other"]


async def test_an_error_while_reporting_is_not_reported(clock: Clock) -> None:
    class Loud(Book):
        async def send_events(self, events: Events) -> None:
            await super().send_events(events)
            reporter.note("client.failed", crash(f"sending number {self.sends}"))

    book = Loud()
    reporter = ErrorReporter(book, FACTS, environment={}, clock=clock)
    task = asyncio.create_task(reporter.run(), name="reporter")
    reporter.note("job.crashed", None)
    for _ in range(5):
        await settle()
    task.cancel()
    assert book.sends == 1


async def test_a_cancelled_task_is_no_error(
    reporter: ErrorReporter, book: Book, running: None
) -> None:
    reporter.note("job.stopped", asyncio.CancelledError())
    await settle()
    assert book.events == []


async def report_through(
    proxy: RecordingProxy, service: FakeService, *, on: bool, environment: Mapping[str, str]
) -> None:
    """An agent's error path as `EXTERNAL_OBSERVABILITY` sets it, then one ordinary request."""
    async with aiohttp.ClientSession() as session:
        door = ServiceEndpoint(
            url=service.url,
            api_key=KEY,
            agent_id="agent-1",
            version="1.2.3",
            proxy=Proxy(url=proxy.url),
            compresses=False,
        )
        sink = ServiceClient(door, session, lifecycle=Standing(), metrics=Standing())
        reporter = ErrorReporter(sink, FACTS, environment=environment) if on else NoReporter()
        task = asyncio.create_task(reporter.run(), name="reporter")
        for planted in PLANTED:
            reporter.note(f"failed: {planted}", crash(f"{planted} and {planted!r}"))
        if on:
            await proxy.until_asked_for(EVENTS)
            await service.until(lambda: len(service.events) > 0)
        await settle()
        task.cancel()
        async with session.get(f"{service.url}/anything", proxy=proxy.url):
            pass


async def test_switched_on_the_proxy_sees_five_facts_and_nothing_planted() -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        await report_through(proxy, service, on=True, environment=ENVIRONMENT)
        (request, *_) = proxy.to(EVENTS)
        events = msgspec.json.decode(request.body)["events"]
        assert events
        for event in events:
            assert set(event) == {
                "message",
                "stackTrace",
                "agentVersion",
                "platform",
                "runtimeVersion",
            }
        leaked = [one for one in (*PLANTED, "planted") if one in request.body.decode()]
        assert leaked == []


async def test_the_key_is_in_the_request_but_not_in_the_report() -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        await report_through(proxy, service, on=True, environment=ENVIRONMENT)
        (request, *_) = proxy.to(EVENTS)
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in request.body.decode()


async def test_switched_off_the_proxy_sees_no_report() -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        await report_through(proxy, service, on=False, environment=ENVIRONMENT)
        assert [request.path for request in proxy.seen] == ["/anything"]
        assert service.events == []


def test_the_facts_describe_this_machine_and_runtime() -> None:
    facts = AgentFacts(agent_version="1")
    assert facts.platform.count("-") == 1
    assert facts.runtime_version.startswith("cpython-3.")


@contextlib.asynccontextmanager
async def a_whole_agent(
    service: FakeService, proxy: RecordingProxy, *, observability: str, data_dir: Path
) -> AsyncIterator[None]:
    """`python -m agent` in a process of its own, its traffic through the proxy."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "API_KEY": KEY,
        "SERVICE_URL": service.url,
        "HTTP_PROXY": proxy.url,
        "AGENT_HEALTH_PORT": "0",
        "HEARTBEAT_PORT": "0",
        "AGENT_DATA_DIR": str(data_dir),
        "EXTERNAL_OBSERVABILITY": observability,
        "SERVICE_SECRET_DB": ENVIRONMENT["SERVICE_SECRET_DB"],
        "TENANT": ENVIRONMENT["TENANT"],
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent",
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


MALFORMED = b"""{"jobId": "job-planted", "fence": "@fence", "checkName": "planted-config",
 "spec": {"type": "URL", "request": {"url": ["https://planted.example/?planted=query"]}}}"""


@pytest.mark.parametrize("observability", ["on", "off"])
async def test_a_whole_agent_reports_five_facts_or_nothing(
    observability: str, tmp_path: Path
) -> None:
    async with (
        FakeService() as service,
        RecordingProxy() as proxy,
        a_whole_agent(service, proxy, observability=observability, data_dir=tmp_path),
    ):
        service.offer_raw(MALFORMED, job_id="job-planted")
        await service.until(lambda: len(service.released) > 0)
        if observability == "on":
            request = await proxy.until_asked_for(EVENTS)
            (event, *_) = msgspec.json.decode(request.body)["events"]
            assert set(event) == {
                "message",
                "stackTrace",
                "agentVersion",
                "platform",
                "runtimeVersion",
            }
            assert "planted" not in request.body.decode()
    assert bool(proxy.to(EVENTS)) is (observability == "on")
