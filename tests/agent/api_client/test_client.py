"""Calls to the service: what stands on them, and what their failures become."""

import itertools

import pytest
from aiohttp import web

from agent.api_client.errors import (
    KeyRefusedError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
    VersionRefusedError,
)
from contract import agent_api as api
from contract.checks import CheckType, Lane
from tests.builders.agents import a_client, a_lifecycle, clean, door
from tests.builders.specs import a_job
from tests.fakes.service import KEY, FakeService, Fault
from tests.servers.tcp import refusing_port

HELLO = api.Hello(
    agent_id="agent-1",
    version="9.8.7",
    platform="linux-x86_64",
    check_types=(CheckType.URL,),
    slots={Lane.UPTIME: 4},
)


def a_claim(**changes: object) -> api.Claim:
    fields = {"claim_id": "c", "slots": {Lane.UPTIME: 4}, "check_types": (CheckType.URL,)}
    return api.Claim(**{**fields, "wait_s": 1, **changes})


async def test_every_request_says_who_asks() -> None:
    async with FakeService() as service, a_client(service) as client:
        await client.hello(HELLO)
        await client.release([])
    for seen in service.seen:
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["x-agent-id"] == "agent-1"
        assert seen.headers["user-agent"] == "picket-agent/9.8.7"
        assert seen.headers["content-type"] == "application/json"


async def test_each_call_reaches_its_place() -> None:
    async with FakeService() as service, a_client(service) as client:
        service.offer(a_job(job_id="one"), a_job(job_id="two"))
        answer = await client.hello(HELLO)
        claimed = await client.claim(a_claim())
        await client.renew([a_job(job_id="one").lease])
        await client.release(
            [api.Released(job_id="two", fence=1, reason=api.ReleaseReason.DRAINING)]
        )
        settled = await client.submit([clean("one").body])
        await client.relay_pings(api.Pings(pings=()))
        await client.send_events(api.Events(events=()))
    assert answer.location.slug_name == "test-location"
    assert len(claimed.jobs) == 2
    assert [lease.job_id for lease in settled.accepted] == ["one"]
    assert [job.job_id for job in service.released] == ["two"]
    calls = [seen.call for seen in service.seen]
    assert calls == ["hello", "claim", "renew", "release", "results", "pings", "events"]


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (401, KeyRefusedError),
        (426, VersionRefusedError),
        (400, RequestRefusedError),
        (413, RequestRefusedError),
        (422, RequestRefusedError),
        (408, ServiceAwayError),
        (425, ServiceAwayError),
        (429, ServiceAwayError),
        (500, ServiceAwayError),
        (502, ServiceAwayError),
        (503, ServiceAwayError),
        (404, ServiceAwayError),
        (301, ServiceAwayError),
    ],
)
async def test_a_status_becomes_an_error_by_the_table(
    status: int, becomes: type[ServiceError]
) -> None:
    async with FakeService() as service, a_client(service) as client:
        service.fail("hello", Fault(status=status, message="Say please."))
        with pytest.raises(becomes) as caught:
            await client.hello(HELLO)
    assert type(caught.value) is becomes
    assert str(caught.value) == f"The service answered {status}: Say please."


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("", None)]
)
async def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    async with FakeService() as service, a_client(service) as client:
        service.fail("hello", Fault(status=503, retry_after=header))
        with pytest.raises(ServiceAwayError) as caught:
            await client.hello(HELLO)
    assert caught.value.retry_after_s == seconds


async def test_a_cut_connection_means_away() -> None:
    async with FakeService() as service, a_client(service) as client:
        service.fail("hello", Fault(cut="after"))
        with pytest.raises(ServiceAwayError, match="cannot be reached"):
            await client.hello(HELLO)


async def test_a_closed_port_means_away() -> None:
    with refusing_port() as port:
        async with a_client(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(ServiceAwayError, match="cannot be reached: connection refused"):
                await client.hello(HELLO)


@pytest.mark.parametrize("status", [200, 204])
async def test_an_answer_that_is_none_of_the_services_means_away(status: int) -> None:
    async def portal(_request: web.Request) -> web.Response:
        body = "<html>Please log in to the guest network</html>" if status == 200 else None
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_post("/{path:.*}", portal)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with a_client(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            with pytest.raises(ServiceAwayError, match="cannot be read"):
                await client.hello(HELLO)
    finally:
        await runner.cleanup()


async def test_the_lifecycle_learns_how_the_service_is() -> None:
    lifecycle = a_lifecycle(ready_grace_s=0, clock=itertools.count().__next__)
    lifecycle.ready()
    async with FakeService() as service, a_client(service, lifecycle=lifecycle) as client:
        service.fail("hello", Fault(status=503), Fault(status=401, message="Gone."))
        with pytest.raises(ServiceAwayError):
            await client.hello(HELLO)
        assert "has not answered" in (lifecycle.unready_because() or "")
        with pytest.raises(KeyRefusedError):
            await client.hello(HELLO)
        assert lifecycle.unready_because() == "The service answered 401: Gone."
        await client.hello(HELLO)
        assert lifecycle.unready_because() is None


@pytest.mark.parametrize(("count", "encoding"), [(1, None), (200, "gzip"), (5000, "gzip")])
async def test_large_bodies_are_compressed(count: int, encoding: str | None) -> None:
    results = [clean(f"job-{number}").body for number in range(count)]
    async with (
        FakeService() as service,
        a_client(service, compresses=True) as client,
    ):
        service.fail("results", Fault(status=503))
        with pytest.raises(ServiceAwayError):
            await client.submit(results)
        (seen,) = service.seen
        assert seen.headers.get("content-encoding") == encoding
        if count == 200:
            assert len((await client.submit(results)).rejected) == 200


async def test_bodies_to_this_machine_are_not_compressed() -> None:
    results = [clean(f"job-{number}").body for number in range(200)]
    async with FakeService() as service, a_client(service, compresses=False) as client:
        await client.submit(results)
    assert "content-encoding" not in service.seen[0].headers


async def test_the_key_is_in_no_repr_and_no_error() -> None:
    texts = [repr(door("http://x"))]
    async with a_client("http://127.0.0.1:1") as client:
        texts.append(repr(client))
        with pytest.raises(ServiceAwayError) as caught:
            await client.hello(HELLO)
        texts += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
    assert not [text for text in texts if KEY in text]


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async def redirect(_request: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/elsewhere")

    app = web.Application()
    app.router.add_post("/{path:.*}", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with a_client(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            with pytest.raises(ServiceAwayError, match="302"):
                await client.hello(HELLO)
    finally:
        await runner.cleanup()
