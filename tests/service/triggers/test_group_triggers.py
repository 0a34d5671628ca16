import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from contract.result import Outcome, Status
from service.audit import audit
from service.db.tables.runs import run_trigger, session
from service.sessions.watching import SessionState, Watch
from service.triggers import links
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import passed, store
from tests.servers.public_api import Answer, ApiUser, PublicApi

PATH = "/v1/triggers/check-groups"


async def a_group(user: ApiUser, *names: str, **fields: Any) -> dict[str, Any]:
    """A group, and checks of these names in it."""
    answer = await user.post("/v1/check-groups", {"name": "Shop", **fields})
    assert answer.status == 201, answer.body
    group: dict[str, Any] = answer.body
    for order, name in enumerate(names):
        body = check_body("url", name=name, groupId=group["id"], groupOrder=order)
        assert (await user.post("/v1/checks/url", body)).status == 201
    return group


async def a_link(user: ApiUser, group: dict[str, Any]) -> str:
    made = (await user.post(f"{PATH}/{group['id']}")).body
    return f"/check-groups/{group['id']}/trigger/{made['token']}"


async def called(api: PublicApi, link: str, *outcomes: Outcome) -> Answer:
    """Call the link without a key; agents bring these outcomes, in the order of the checks."""
    nobody = ApiUser(api.url, api.http, api.alice.secrets, {"authorization": "Bearer nothing"})
    answer = asyncio.create_task(nobody.get(link))
    query = select(session).where(session.c.stopped_ms.is_(None))
    query = query.order_by(session.c.turn.nulls_first())
    for outcome in outcomes:
        rows: Any = ()
        while not rows and not answer.done():
            await asyncio.sleep(0.01)
            rows = await api.database.read(lambda c: c.execute(query).all())
        check = {"id": rows[0].check_id, "checkType": "URL"}
        await store(api, check, outcome, session_id=rows[0].id)
    return await answer


async def test_a_groups_trigger_has_the_shape_of_the_specification(alice: ApiUser) -> None:
    group = await a_group(alice)
    made = await alice.post(f"{PATH}/{group['id']}")
    assert made.status == 201
    assert set(made.body) == {
        "id",
        "token",
        "created_at",
        "groupId",
        "called_at",
        "updated_at",
        "url",
    }
    assert made.body["groupId"] == group["id"]
    read = (await alice.get(f"{PATH}/{group['id']}")).body
    assert read == made.body
    assert (await alice.delete(f"{PATH}/{group['id']}")).status == 204
    missing = await alice.get(f"{PATH}/{group['id']}")
    assert missing.status == 404
    assert missing.body["message"] == f"The check group {group['id']} has no trigger."


async def test_a_link_answers_200_when_all_checks_of_the_group_pass(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, "A", "B", concurrency=1)
    answer = await called(api, await a_link(alice, group), passed(12.9), passed(40))
    assert (answer.status, answer.body) == (200, {"hasFailures": False, "responseTime": 40})


async def test_a_run_by_a_link_is_in_the_audit_log_with_its_group(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, "A")
    await called(api, await a_link(alice, group), passed())
    (entry,) = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert (entry.operation, entry.resource) == ("runGroupByLink", "check-groups")
    assert (entry.resource_id, entry.key_id) == (str(group["id"]), None)


async def test_a_link_names_each_check_that_did_not_pass(api: PublicApi, alice: ApiUser) -> None:
    group = await a_group(alice, "A", "B", "C", concurrency=1)
    failed = Outcome(status=Status.FAILED)
    answer = await called(api, await a_link(alice, group), passed(), failed, failed)
    assert (answer.status, answer.body["hasFailures"]) == (503, True)
    rows = await api.database.read(lambda c: c.execute(select(session).order_by(session.c.id)))
    ids = {row.name: row.id for row in rows}
    assert answer.body["message"] == (
        f"The check B did not pass: FAILED at default (session {ids['B']})."
        f" The check C did not pass: FAILED at default (session {ids['C']})."
    )
    assert answer.body["attributes"] == {"checkSessionId": ids["B"]}


async def test_a_token_opens_what_it_was_made_for_alone(alice: ApiUser) -> None:
    group, other = await a_group(alice, "A"), await a_group(alice, "B")
    link = await a_link(alice, group)
    token = link.rpartition("/")[2]
    for wrong in (f"/check-groups/{other['id']}", f"/checks/{group['id']}"):
        assert (await alice.get(f"{wrong}/trigger/{token}")).status == 404
    wrong_number = await alice.get(f"/check-groups/0/trigger/{token}")
    assert wrong_number.status == 400


async def test_a_link_that_waited_long_enough_looks_at_no_further_session(
    alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    async def look(watch: Watch) -> SessionState:
        looked.append(watch.session_id)
        return await watch.backend.database.read(watch._query)

    monkeypatch.setattr(links, "MAX_WAIT_S", 0.05)
    monkeypatch.setattr(Watch, "read", look)
    group = await a_group(alice, "A", "B", "C")
    answer = await alice.get(await a_link(alice, group))
    assert answer.status == 408
    assert set(looked) == {answer.body["attributes"]["checkSessionId"]}


async def test_a_group_without_checks_is_not_run(alice: ApiUser) -> None:
    group = await a_group(alice)
    answer = await alice.get(await a_link(alice, group))
    assert (answer.status, answer.body["message"]) == (
        404,
        "No check of the group Shop can be run.",
    )


async def test_the_trigger_of_a_deleted_group_is_gone(api: PublicApi, alice: ApiUser) -> None:
    group = await a_group(alice)
    await a_link(alice, group)
    assert (await alice.delete(f"/v1/check-groups/{group['id']}")).status == 204
    assert await api.database.read(lambda c: c.execute(select(run_trigger)).all()) == []


async def test_tags_of_a_group_count_for_sessions_of_its_checks(alice: ApiUser) -> None:
    await a_group(alice, "A", tags=["shop"])
    target = {"target": {"matchTags": [["shop"]]}}
    answer = await alice.post("/v1/check-sessions/trigger", target)
    assert [one["name"] for one in answer.body["sessions"]] == ["A"]


async def test_no_other_run_begins_while_one_goes_on(api: PublicApi, alice: ApiUser) -> None:
    group = await a_group(alice, "first", "second", concurrency=1)
    link = await a_link(alice, group)
    running = asyncio.create_task(alice.get(link))
    rows: Any = ()
    while not rows:
        await asyncio.sleep(0.01)
        rows = await api.database.read(lambda c: c.execute(select(session)).all())
    refused = await alice.get(link)
    assert refused.status == 409
    assert refused.body["message"].startswith("A run of the group Shop has not ended (session ")
    assert refused.body["attributes"]["checkSessionId"] in {row.id for row in rows}
    for row in rows:
        check = {"id": row.check_id, "checkType": "URL"}
        await store(api, check, passed(), session_id=row.id)
    assert (await running).status == 200
    assert (await called(api, link, passed(), passed())).status == 200
