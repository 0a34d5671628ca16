from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from service.db.ids import new_id
from service.db.tables.error_groups import error_group
from service.error_groups.model import MOST_OF_CHECK
from service.results.model import ResultType
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import START_MS, a_record, failed, passed, store, store_all
from tests.servers.public_api import ApiUser, PublicApi

SECOND_MS = 1_000
REFUSED = "Nothing listens on 127.0.0.1:{} (connection refused)."


async def a_check(user: ApiUser) -> dict[str, Any]:
    answer = await user.post("/v1/checks/url", check_body("url"))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def groups(user: ApiUser, check: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    path = "/v1/error-groups" + (f"/checks/{check['id']}" if check else "")
    answer = await user.get(path)
    assert answer.status == 200, answer.body
    return list(answer.body)


async def patch(user: ApiUser, group: dict[str, Any], **body: bool) -> dict[str, Any]:
    answer = await user.ask("PATCH", f"/v1/error-groups/{group['id']}", body)
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def test_failures_that_are_alike_are_one_group_with_the_newest_message(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    for order in range(3):
        at_ms = START_MS + order * SECOND_MS
        await store(api, check, failed(REFUSED.format(8000 + order)), started_ms=at_ms)
    (group,) = await groups(alice, check)
    assert group == {
        "id": group["id"],
        "checkId": check["id"],
        "errorHash": group["errorHash"],
        "rawErrorMessage": REFUSED.format(8002),
        "cleanedErrorMessage": "Nothing listens on <address> (connection refused).",
        "firstSeen": "2026-09-21T14:13:20.000Z",
        "lastSeen": "2026-09-21T14:13:22.000Z",
        "archivedUntilNextEvent": False,
        "archiveForEver": False,
        "rootCauseAnalyses": [],
    }
    assert len(group["errorHash"]) == 32
    assert (await alice.get(f"/v1/error-groups/{group['id']}")).body == group


async def test_a_result_that_comes_late_changes_when_it_was_seen_first(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, failed(REFUSED.format(2)), started_ms=START_MS + SECOND_MS)
    await store(api, check, failed(REFUSED.format(1)), started_ms=START_MS)
    (group,) = await groups(alice)
    assert group["rawErrorMessage"] == REFUSED.format(2)
    assert (group["firstSeen"] < group["lastSeen"]) is True


async def test_only_final_failures_with_a_message_make_a_group(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, passed())
    await store(api, check, None)
    await store(api, check, failed(), result_type=ResultType.ATTEMPT)
    await store(api, check, failed(), body=b"{}")
    await store(api, check, failed(), body=None)
    await store(api, check, failed(""))
    assert await groups(alice) == []


async def test_a_result_that_passed_is_not_read(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    record = a_record(
        check, location_id=alice.secrets.location_id, outcome=passed(), body=b"no JSON"
    )
    await store_all(api, [record])
    assert await groups(alice) == []


async def test_groups_are_listed_seen_last_first_by_pages_and_by_check(
    api: PublicApi, alice: ApiUser
) -> None:
    first, second = await a_check(alice), await a_check(alice)
    for order, check in enumerate((first, second, first)):
        message = f"Cause {'abc'[order]}."
        await store(api, check, failed(message), started_ms=START_MS + order * SECOND_MS)
    messages = [one["cleanedErrorMessage"] for one in await groups(alice)]
    assert messages == ["Cause c.", "Cause b.", "Cause a."]
    of_first = [one["cleanedErrorMessage"] for one in await groups(alice, first)]
    assert of_first == ["Cause c.", "Cause a."]
    page = await alice.get("/v1/error-groups?limit=2&page=1")
    assert len(page.body) == 2
    assert page.headers["link"].endswith('/v1/error-groups?limit=2&page=2>; rel="next"')
    (rest,) = (await alice.get(f"/v1/error-groups/checks/{first['id']}?limit=1&page=2")).body
    assert rest["cleanedErrorMessage"] == "Cause a."


async def test_what_is_archived_until_the_next_event_comes_back_with_it(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, failed())
    (group,) = await groups(alice)
    archived = await patch(alice, group, archivedUntilNextEvent=True)
    assert archived == {**group, "archivedUntilNextEvent": True}
    assert await groups(alice) == await groups(alice, check) == []
    assert (await alice.get(f"/v1/error-groups/{group['id']}")).body == archived
    await store(api, check, failed(), started_ms=START_MS + SECOND_MS)
    (again,) = await groups(alice)
    assert (again["id"], again["archivedUntilNextEvent"]) == (group["id"], False)


async def test_what_is_archived_for_ever_stays_so_whatever_occurs(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, failed())
    (group,) = await groups(alice)
    assert (await patch(alice, group, archiveForEver=True))["archiveForEver"] is True
    await store(api, check, failed(), started_ms=START_MS + SECOND_MS)
    assert await groups(alice) == []
    kept = (await alice.get(f"/v1/error-groups/{group['id']}")).body
    assert kept["lastSeen"] > group["lastSeen"]
    await patch(alice, group, archiveForEver=False)
    assert len(await groups(alice)) == 1


async def test_a_field_that_is_not_sent_stays_as_it_is(api: PublicApi, alice: ApiUser) -> None:
    await store(api, await a_check(alice), failed())
    (group,) = await groups(alice)
    await patch(alice, group, archivedUntilNextEvent=True, archiveForEver=True)
    assert (await patch(alice, group, archiveForEver=False))["archivedUntilNextEvent"] is True
    assert (await patch(alice, group))["archivedUntilNextEvent"] is True


@pytest.mark.parametrize("body", [{"archiveForEver": "yes"}, {"archivedUntilNextEvent": 1}, []])
async def test_what_is_no_boolean_is_refused(api: PublicApi, alice: ApiUser, body: Any) -> None:
    await store(api, await a_check(alice), failed())
    (group,) = await groups(alice)
    answer = await alice.ask("PATCH", f"/v1/error-groups/{group['id']}", body)
    assert answer.status == 400


async def test_a_group_of_nobody_is_not_there(alice: ApiUser) -> None:
    answer = await alice.get("/v1/error-groups/nope")
    assert (answer.status, answer.body["message"]) == (404, "There is no error group nope.")
    assert (await alice.ask("PATCH", "/v1/error-groups/nope", {})).status == 404
    assert (await alice.get("/v1/error-groups/checks/nope")).status == 404


async def test_the_groups_of_a_check_go_with_it(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check, failed())
    assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 204
    assert await groups(alice) == []


async def test_a_check_keeps_the_500_groups_that_were_seen_last(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await api.database.write(full(check, alice.secrets.account_id))
    await store(api, check, failed("The newest."), started_ms=START_MS + MOST_OF_CHECK + 1)
    query = select(func.count(), func.min(error_group.c.last_seen_ms))
    (row,) = await api.database.read(lambda c: list(c.execute(query)))
    assert tuple(row) == (MOST_OF_CHECK, START_MS + 1)
    assert (await groups(alice))[0]["rawErrorMessage"] == "The newest."


def full(check: dict[str, Any], account_id: str) -> Callable[[Any], None]:
    """Fills a check with as many groups as it may have."""
    rows: Sequence[dict[str, Any]] = [
        {
            "id": new_id(START_MS + order),
            "account_id": account_id,
            "check_id": check["id"],
            "error_hash": str(order),
            "raw": "x",
            "cleaned": "x",
            "first_seen_ms": START_MS,
            "last_seen_ms": START_MS + order,
            "archived_until_next": False,
            "archived_forever": False,
        }
        for order in range(MOST_OF_CHECK)
    ]

    def change(connection: Any) -> None:
        connection.execute(insert(error_group), rows)

    return change
