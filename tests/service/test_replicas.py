"""Two services on one PostgreSQL: it does not matter which of them answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import psycopg
import pytest

from service.db.postgresql_notices import NoticeExchange
from service.settings import PostgresUrl
from service.web.cookies import SESSION_COOKIE
from tests.builders.engines import ON_POSTGRESQL
from tests.builders.patience import LONG_S
from tests.builders.status_pages import a_page, a_service
from tests.servers.public_api import Answer
from tests.servers.service import RunningService, a_claimed_job, a_result_body, serve_service

pytestmark = ON_POSTGRESQL

RESULTS: Final = "/agent/v1/results"


@dataclass(frozen=True, slots=True)
class Replicas:
    """Both services, of which the second one started later."""

    one: RunningService
    two: RunningService


@pytest.fixture(autouse=True)
def only_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process looks for itself now and then: what it shows, it was told."""
    monkeypatch.setattr("service.db.postgresql_notices._POLL_S", 10 * LONG_S)
    monkeypatch.setattr("service.web.status_page.page_cache.FRESH_S", 10 * LONG_S)


@pytest.fixture
async def replicas(tmp_path: Path, postgresql_url: str) -> AsyncIterator[Replicas]:
    shared: dict[str, Any] = {
        "database": PostgresUrl(postgresql_url),
        "key_pepper": "p" * 32,
        "master_keys": (b"m" * 32,),
        "public_url": "http://picket.test",
    }
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(serve_service(tmp_path / "one", **shared))
        other = serve_service(tmp_path / "two", first_secrets=one.secrets, **shared)
        yield Replicas(one, await stack.enter_async_context(other))


async def sign_in(at: RunningService, **form: str) -> aiohttp.ClientResponse:
    async with at.http.post(at.url + "/sign-in", data=form, allow_redirects=False) as answer:
        await answer.read()
        return answer


async def open_page(at: RunningService, *, signed_in_at: RunningService) -> aiohttp.ClientResponse:
    """The stream of a page, once it is ready."""
    entered = await sign_in(signed_in_at, key=at.secrets.api_key)
    kept = SimpleCookie(entered.headers["set-cookie"])[SESSION_COOKIE].value
    headers = {"cookie": f"{SESSION_COOKIE}={kept}"}
    stream = await at.http.get(at.url + "/live", headers=headers)
    assert await stream.content.readline() == b"event: ready\n"
    return stream


async def await_change(stream: aiohttp.ClientResponse, text: str) -> None:
    """Read on until a change says so."""
    async with asyncio.timeout(LONG_S):
        while text not in await next_change(stream):
            pass


async def next_change(stream: aiohttp.ClientResponse) -> str:
    while await stream.content.readline() != b"event: change\n":
        pass
    return (await stream.content.readline()).decode()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LONG_S):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def test_guesses_of_a_password_are_counted_together(replicas: Replicas) -> None:
    form = {"email": "nobody@example.com", "password": "wrong password"}

    statuses = [
        (await sign_in(at, **form)).status for _ in range(5) for at in (replicas.one, replicas.two)
    ]

    assert statuses == [422] * 10
    assert (await sign_in(replicas.one, **form)).status == 429
    assert (await sign_in(replicas.two, **form)).status == 429


async def test_requests_of_a_key_are_counted_together(replicas: Replicas) -> None:
    """It may list results 60 times a minute; alone, neither service would refuse the 59th."""
    path = f"/v1/check-results/{uuid4()}"

    async def ask(at: RunningService) -> int:
        return (await at.alice.get(path)).status

    assert [await ask(replicas.one) for _ in range(60)] == [404] * 60
    for _ in range(58):
        if await ask(replicas.two) == 429:
            return
        await asyncio.sleep(0.25)
    pytest.fail("The second service never knew what the first one had let pass.")


async def test_a_page_is_told_of_what_the_other_one_stored(replicas: Replicas) -> None:
    one, two = replicas.one, replicas.two
    job = await a_claimed_job(two)
    stream = await open_page(one, signed_in_at=two)

    # It comes after the notice of the sign-in, with which it may be one event.
    await two.alice.post("/v1/snippets", {"name": "Log in", "script": "1"})
    await await_change(stream, '"checks":null')
    await two.agent("POST", RESULTS, {"results": [a_result_body(job)]})
    await await_change(stream, job["checkId"])
    stream.close()


async def a_waited_session(replicas: Replicas) -> tuple[asyncio.Task[Answer], dict[str, Any]]:
    """Somebody at the first service waits for a session, of which an agent of the second ran all.

    The result that ends it is yet to be sent.
    """
    one, two = replicas.one, replicas.two
    first = await a_claimed_job(two)
    await two.agent("POST", RESULTS, {"results": [a_result_body(first)]})
    target = {"target": {"checkId": [first["checkId"]]}}
    started = await one.alice.post("/v1/check-sessions/trigger", target)
    session = started.body["sessions"][0]["checkSessionId"]
    [job] = (await two.claim("claim-2")).body["jobs"]
    waiting = asyncio.create_task(one.alice.get(f"/v1/check-sessions/{session}/completion"))
    await asyncio.sleep(0.1)
    return waiting, a_result_body(job)


async def test_a_session_is_awaited_at_one_and_ended_by_the_other(replicas: Replicas) -> None:
    waiting, result = await a_waited_session(replicas)

    await replicas.two.agent("POST", RESULTS, {"results": [result]})

    async with asyncio.timeout(LONG_S):
        assert (await waiting).body["status"] == "PASSED"


async def test_a_status_page_that_one_changed_is_shown_by_the_other(replicas: Replicas) -> None:
    one, two = replicas.one, replicas.two
    page = await a_page(one.alice, await a_service(one.alice), name="Before", url="state")

    await until(lambda: shows(two, "Before", "picket.test", "/status/state"))
    assert not await shows(two, "Before", "state.example")

    await change_page(one, page)

    await until(lambda: shows(two, "After", "picket.test", "/status/state"))
    await until(lambda: shows(two, "After", "state.example"))


async def shows(at: RunningService, text: str, host: str, path: str = "/") -> bool:
    async with at.http.get(at.url + path, headers={"host": host}) as answer:
        return text in await answer.text()


async def change_page(at: RunningService, page: dict[str, Any]) -> None:
    changed = {"name": "After", "url": "state", "customDomain": "state.example", "cards": []}
    answer = await at.alice.put(f"/v1/status-pages/{page['id']}", changed)
    assert answer.status == 200, answer.body


async def test_what_nobody_was_told_is_found_out_when_the_connection_comes_back(
    replicas: Replicas, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas.one, replicas.two
    page = await a_page(two.alice, await a_service(two.alice), name="Before", url="state")
    await until(lambda: shows(one, "Before", "picket.test", "/status/state"))
    stream = await open_page(one, signed_in_at=two)
    waiting, result = await a_waited_session(replicas)
    monkeypatch.setattr(NoticeExchange, "pass_on", lambda _exchange, _notices: None)

    await two.agent("POST", RESULTS, {"results": [result]})
    await change_page(two, page)
    with psycopg.connect(postgresql_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'picket-notices'"
        )

    async with asyncio.timeout(LONG_S):
        assert (await waiting).body["status"] == "PASSED"
    await until(lambda: shows(one, "After", "picket.test", "/status/state"))
    await until(lambda: shows(one, "After", "state.example"))
    while '"checks":null' not in await next_change(stream):
        pass
    stream.close()
