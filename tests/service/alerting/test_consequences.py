"""What becomes of a check's incident when the check is deleted."""

import time
from typing import Any

from tests.builders.alerting import an_outcome_of
from tests.builders.check_bodies import check_body
from tests.builders.status_pages import INCIDENTS, a_service
from tests.builders.stored_results import store
from tests.servers.public_api import ApiUser, PublicApi


async def a_check(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def play(api: PublicApi, check: dict[str, Any], letters: str) -> None:
    for letter in letters:
        await store(api, check, an_outcome_of(letter), started_ms=time.time_ns() // 1_000_000)


async def test_a_check_that_is_deleted_leaves_no_incident_open(
    api: PublicApi, alice: ApiUser
) -> None:
    wanted = {
        "serviceId": await a_service(alice),
        "severity": "CRITICAL",
        "name": "Shop is down",
        "description": "Nobody can buy.",
        "notifySubscribers": True,
    }
    failing, passing = await a_check(alice, triggerIncident=wanted), await a_check(alice)
    await play(api, failing, "F")
    assert await statuses(alice) == ["INVESTIGATING"]
    for check in (passing, failing):
        assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 204
    assert await statuses(alice) == ["RESOLVED"]


async def statuses(user: ApiUser) -> list[str]:
    return [one["lastUpdateStatus"] for one in (await user.get(INCIDENTS)).body["entries"]]
