"""Deployments on their way: one at a time, followed, awaited, cancelled, and ended when left."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

from service.projects import actions, making, store
from service.projects.model import DeploymentEnded
from service.projects.running import Deployments
from tests.builders.projects import SHOP, await_end, body, start_deploying, url_check
from tests.servers.public_api import ApiUser, PublicApi

DEPLOYMENTS = f"{SHOP}/deployments"


@asynccontextmanager
async def busy_database(api: PublicApi) -> AsyncIterator[None]:
    """Changes wait for as long as the block lasts."""
    held, release = threading.Event(), threading.Event()

    def hold(_connection: Connection) -> None:
        held.set()
        release.wait(30)

    holding = asyncio.create_task(api.database.write(hold))
    await asyncio.to_thread(held.wait, 30)
    try:
        yield
    finally:
        release.set()
        await holding


async def left_behind(api: PublicApi, user: ApiUser, *, age_ms: int = 0) -> str:
    """The id of a deployment whose process was killed after it had begun."""

    def change(connection: Connection) -> str:
        now_ms = api.backend.clock.now_ms(connection) - age_ms
        made = actions.begin(connection, user.secrets.account_id, "shop", now_ms=now_ms)
        actions.start(connection, made.id, now_ms=now_ms)
        return made.id

    return await api.database.write(change)


async def read_stream(user: ApiUser, path: str) -> list[str]:
    text = str((await user.get(path)).body)
    return [frame for frame in text.split("\n\n") if frame]


async def test_one_deployment_at_a_time_and_the_refusal_names_it_at_the_top(
    api: PublicApi, alice: ApiUser
) -> None:
    first = await left_behind(api, alice)
    refused = await alice.post("/v1/projects/deploy", body(url_check("home")))
    removed = await alice.delete(SHOP)
    other = body(url_check("home"))
    other["project"] = {"logicalId": "other", "name": "Other"}

    assert (refused.status, refused.body["deploymentId"]) == (409, first)
    assert refused.body.keys() >= {"statusCode", "error", "message"}
    assert removed.status == 200, "the project itself is not there yet"
    assert (await await_end(alice, await start_deploying(alice, other)))["status"] == "SUCCEEDED"


async def test_a_deployment_whose_process_is_gone_fails_after_its_lease(
    api: PublicApi, alice: ApiUser
) -> None:
    first = await left_behind(api, alice, age_ms=actions.LEASE_MS)
    seen = (await alice.get(f"{DEPLOYMENTS}/{first}")).body
    assert (seen["status"], seen["error"]["code"]) == ("FAILED", "DEPLOYMENT_INTERRUPTED")
    second = await left_behind(api, alice, age_ms=actions.LEASE_MS)
    made = await await_end(alice, await start_deploying(alice, body(url_check("home"))))
    assert made["status"] == "SUCCEEDED", "a new one takes the place of one that was left"
    listed = (await alice.get(DEPLOYMENTS)).body
    assert {one["id"] for one in listed} == {first, second, made["id"]}


async def test_one_that_was_given_up_is_not_made_after_all(api: PublicApi, alice: ApiUser) -> None:
    async with busy_database(api):
        asked = asyncio.create_task(start_deploying(alice, body(url_check("home"))))
    begun = await asked

    def give_up(connection: Connection) -> None:
        row = store.find_deployment(connection, alice.secrets.account_id, "shop", begun["id"])
        if row is not None:
            actions.end_if_gone(connection, row, now_ms=row.lease_ms)

    await api.database.write(give_up)
    ended = await await_end(alice, begun)
    made = (await alice.get("/v1/checks")).body
    assert (ended["status"], len(made)) in (("FAILED", 0), ("SUCCEEDED", 1))


async def test_a_cancelled_deployment_makes_nothing(api: PublicApi, alice: ApiUser) -> None:
    first = await left_behind(api, alice)
    cancelled = (await alice.post(f"{DEPLOYMENTS}/{first}/cancel")).body
    assert (cancelled["status"], cancelled["cancelRequestedAt"] is not None) == ("CANCELLED", True)
    ended = await await_end(alice, {"logicalId": "shop", "id": first})
    assert ended["result"] is None
    again = await start_deploying(alice, body(url_check("home")))
    made = await await_end(alice, again)
    late = (await alice.post(f"{DEPLOYMENTS}/{again['id']}/cancel")).body
    assert (made["status"], late["status"]) == ("SUCCEEDED", "SUCCEEDED")


async def test_a_deployment_is_cancelled_until_its_commit(api: PublicApi, alice: ApiUser) -> None:
    checks = [url_check(f"c{number}") for number in range(60)]
    begun = await start_deploying(alice, body(*checks))
    running = api.backend.deployments.find(begun["id"])
    assert running is not None
    running.is_cancelled = True
    ended = await await_end(alice, begun)
    assert ended["status"] == "CANCELLED"
    assert (await alice.get("/v1/checks")).body == []


async def test_the_stream_tells_the_progress_and_ends_with_the_deployment(alice: ApiUser) -> None:
    checks = [url_check(f"c{number}") for number in range(20)]
    begun = await start_deploying(alice, body(*checks))
    frames = await read_stream(alice, f"{DEPLOYMENTS}/{begun['id']}/events")
    again = await read_stream(alice, f"{DEPLOYMENTS}/{begun['id']}/events")

    assert frames[-1].startswith('event: complete\ndata: {"id":')
    assert '"status":"SUCCEEDED"' in frames[-1]
    assert all(one.startswith(("event: progress\ndata: {", ": ")) for one in frames[:-1])
    assert again == frames[-1:], "of one that is over the end alone is told"
    assert (await alice.get(f"{DEPLOYMENTS}/none/events")).status == 404


async def test_a_stream_that_breaks_is_taken_up_again(api: PublicApi, alice: ApiUser) -> None:
    first = await left_behind(api, alice)
    url, headers = (
        f"{alice.url}{DEPLOYMENTS}/{first}/events",
        {"authorization": f"Bearer {alice.secrets.api_key}"},
    )
    async with alice.http.get(url, headers=headers) as answer:
        assert await answer.content.readuntil(b"\n\n") == b": alive\n\n"
    follow = asyncio.create_task(read_stream(alice, f"{DEPLOYMENTS}/{first}/events"))
    await alice.post(f"{DEPLOYMENTS}/{first}/cancel")
    frames = await follow
    assert '"status":"CANCELLED"' in frames[-1]


async def test_completion_waits_for_the_end_and_answers_408_before(
    api: PublicApi, alice: ApiUser
) -> None:
    first = await left_behind(api, alice)
    path = f"{DEPLOYMENTS}/{first}/completion"
    early = await alice.get(f"{path}?maxWaitSeconds=1")
    waiting = asyncio.create_task(alice.get(path))
    await alice.post(f"{DEPLOYMENTS}/{first}/cancel")
    assert (early.status, (await waiting).body["status"]) == (408, "CANCELLED")
    assert (await alice.get(f"{DEPLOYMENTS}/none/completion")).status == 404


async def test_an_end_in_another_process_wakes_who_waits_here(api: PublicApi) -> None:
    deployments = Deployments(api.database)
    with deployments.waiters.register("one") as ended:
        await api.database.write(lambda c: actions.announce(c, DeploymentEnded("one")))
        await asyncio.wait_for(ended.wait(), 10)
    await deployments.close()


def of_project(logical_id: str) -> dict[str, Any]:
    """A deployment of another project."""
    return body(url_check("home"), project={"logicalId": logical_id, "name": logical_id})


async def test_deployments_of_several_projects_are_made_one_after_the_other(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_RENEW_S", 0.01)  # several times during the wait
    async with api.backend.deployments.turn:
        begun = [await start_deploying(alice, of_project(name)) for name in ("one", "two", "three")]
        path = "/v1/projects/two/deployments/{id}/cancel".format_map(begun[1])
        cancelled = (await alice.post(path)).body
        await asyncio.sleep(0.1)
        waits = await alice.get("/v1/projects/one/deployments/{id}".format_map(begun[0]))
    ended = [(await await_end(alice, one))["status"] for one in begun]

    assert (cancelled["status"], waits.body["status"]) == ("CANCELLED", "PENDING")
    assert ended == ["SUCCEEDED", "CANCELLED", "SUCCEEDED"]
    assert len((await alice.get("/v1/checks")).body) == 2


async def test_an_account_has_few_deployments_that_are_not_over(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    async with api.backend.deployments.turn:
        begun = [await start_deploying(alice, of_project(f"p{number}")) for number in range(5)]
        refused = await alice.post("/v1/projects/deploy", of_project("p5"))
        tried = await alice.post("/v1/projects/deploy?dryRun=true", of_project("p5"))
        of_another = await start_deploying(charlie, of_project("p0"))
    await await_end(charlie, of_another)
    for one in begun:
        await await_end(alice, one)

    assert (refused.status, tried.status) == (429, 429)
    assert refused.headers["retry-after"] == "5"
    assert (await alice.post("/v1/projects/deploy", of_project("p5"))).status == 202


async def test_a_service_that_stops_leaves_what_waits_to_the_end_of_its_lease(
    api: PublicApi, alice: ApiUser
) -> None:
    async with api.backend.deployments.turn:
        begun = await start_deploying(alice, of_project("one"))
        await asyncio.wait_for(api.backend.deployments.close(), 10)
    left = await alice.get("/v1/projects/one/deployments/{id}".format_map(begun))

    assert left.body["status"] == "PENDING"
    assert (await alice.get("/v1/checks")).body == []


async def test_the_same_request_twice_is_one_deployment(alice: ApiUser) -> None:
    key = {"headers": {"Idempotency-Key": "one"}}
    sent: dict[str, Any] = body(url_check("home"))
    first = await alice.post("/v1/projects/deploy", sent, **key)
    second = await alice.post("/v1/projects/deploy", sent, headers={"Idempotency-Key": "one"})
    assert first.body["id"] == second.body["id"]


async def test_projects_are_listed_and_made(alice: ApiUser) -> None:
    made = await alice.post("/next/projects", {"logicalId": "office", "name": "Office"})
    again = await alice.post("/next/projects", {"logicalId": "office", "name": "Office"})
    begun = await start_deploying(alice, body(url_check("home"), url_check("cart")))
    await await_end(alice, begun)
    listed = (await alice.get("/v1/projects")).body
    alone = (await alice.get("/next/projects/office")).body

    assert (made.status, again.status) == (201, 409)
    assert [(one["logicalId"], one["counts"]) for one in listed] == [
        ("office", {}),
        ("shop", {"check": 2}),
    ]
    assert [one["logicalId"] for one in (await alice.get("/next/projects")).body] == [
        "office",
        "shop",
    ]
    assert alone == made.body
    assert (await alice.get("/next/projects/none")).status == 404


async def test_old_deployments_are_forgotten(api: PublicApi, alice: ApiUser) -> None:
    first = await left_behind(api, alice, age_ms=31 * 86_400_000)

    def forget(connection: Connection) -> int:
        return actions.forget_old(connection, now_ms=api.backend.clock.now_ms(connection))

    assert await api.database.write(forget) == 1
    assert (await alice.get(f"{DEPLOYMENTS}/{first}")).status == 404


async def test_a_project_whose_logical_id_has_slashes_is_found_at_all_paths(alice: ApiUser) -> None:
    sent = body(url_check("home/front"), project={"logicalId": "web/shop", "name": "Shop"})
    started = (await alice.post("/v1/projects/deploy", sent)).body
    project = "/v1/projects/web%2Fshop"
    one = f"{project}/deployments/{started['id']}"
    ended = await alice.get(f"{one}/completion?maxWaitSeconds=30")
    events = await read_stream(alice, f"{one}/events")
    listed = await alice.get(f"{project}/deployments")
    plans = "/next/projects/web%2Fshop/imports"
    planned = await alice.post(plans, {"filters": []})

    assert (ended.status, ended.body["status"]) == (200, "SUCCEEDED")
    assert events[-1].startswith("event: complete")
    assert [each["id"] for each in listed.body] == [started["id"]]
    assert (await alice.get(one)).body == ended.body
    assert (await alice.post(f"{one}/cancel")).body["status"] == "SUCCEEDED"
    assert (await alice.get(project)).body["logicalId"] == "web/shop"
    assert (await alice.get("/next/projects/web%2Fshop")).body["logicalId"] == "web/shop"
    assert planned.status == 201, planned.body
    assert len((await alice.get(plans)).body) == 1
    removed = await alice.delete(project)
    assert removed.status == 202, removed.body
    other = (await alice.get("/v1/projects/web/shop/nothing")).body
    assert "web/shop/nothing" in other["message"]
