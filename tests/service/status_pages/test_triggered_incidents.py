"""Incidents that follow a check's alerts."""

from typing import Any

import pytest

from service.status_pages.actions import open_incident, resolve_incident
from tests.builders.check_bodies import check_body
from tests.builders.status_pages import INCIDENTS, a_service, an_incident, say
from tests.servers.public_api import ApiUser, PublicApi


def trigger(service_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "serviceId": service_id,
        "severity": "CRITICAL",
        "name": "Shop is down",
        "description": "Nobody can buy.",
        "notifySubscribers": True,
        **changes,
    }


async def opened(api: PublicApi, wanted: dict[str, Any], check_id: str = "c1") -> str | None:
    def change(connection: Any) -> str | None:
        now_ms = api.backend.clock.now_ms(connection)
        account_id = api.alice.secrets.account_id
        return open_incident(connection, account_id, wanted, check_id=check_id, now_ms=now_ms)

    return await api.database.write(change)


async def resolved(api: PublicApi, incident_id: str) -> None:
    def change(connection: Any) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        resolve_incident(connection, api.alice.secrets.account_id, incident_id, now_ms=now_ms)

    await api.database.write(change)


async def statuses(user: ApiUser, incident_id: str) -> list[str]:
    answer = await user.get(f"{INCIDENTS}/{incident_id}/incident-updates")
    return [one["status"] for one in reversed(answer.body)]


async def test_an_outage_opens_one_incident_and_its_end_resolves_it(
    api: PublicApi, alice: ApiUser
) -> None:
    service = await a_service(alice)
    incident_id = await opened(api, trigger(service))
    assert incident_id is not None
    assert await opened(api, trigger(service)) == incident_id
    read = (await alice.get(f"{INCIDENTS}/{incident_id}")).body
    assert (read["name"], read["severity"], read["lastUpdateStatus"]) == (
        "Shop is down",
        "CRITICAL",
        "INVESTIGATING",
    )
    assert read["incidentUpdates"][0]["description"] == "Nobody can buy."
    assert read["incidentUpdates"][0]["notifySubscribers"]
    await resolved(api, incident_id)
    await resolved(api, incident_id)
    assert await statuses(alice, incident_id) == ["INVESTIGATING", "RESOLVED"]
    next_one = await opened(api, trigger(service))
    assert next_one not in (None, incident_id)


async def test_checks_that_share_a_service_have_an_incident_each(
    api: PublicApi, alice: ApiUser
) -> None:
    service = await a_service(alice)
    one, other = [await opened(api, trigger(service), check_id) for check_id in ("c1", "c2")]
    assert one is not None
    assert other is not None
    assert one != other
    await resolved(api, one)
    assert await statuses(alice, other) == ["INVESTIGATING"]


async def test_what_a_person_has_resolved_is_not_resolved_again(
    api: PublicApi, alice: ApiUser
) -> None:
    incident_id = await opened(api, trigger(await a_service(alice)))
    assert incident_id is not None
    await say(alice, {"id": incident_id}, "RESOLVED")
    await resolved(api, incident_id)
    assert await statuses(alice, incident_id) == ["INVESTIGATING", "RESOLVED"]


async def test_an_incident_that_was_deleted_needs_no_resolution(
    api: PublicApi, alice: ApiUser
) -> None:
    incident_id = await opened(api, trigger(await a_service(alice)))
    assert incident_id is not None
    await alice.delete(f"{INCIDENTS}/{incident_id}")
    await resolved(api, incident_id)
    assert (await alice.get(INCIDENTS)).body["entries"] == []


async def test_a_service_that_is_gone_has_no_incident(api: PublicApi, charlie: ApiUser) -> None:
    assert await opened(api, trigger("none")) is None
    assert await opened(api, trigger(await a_service(charlie))) is None


async def test_an_incident_of_a_person_is_not_the_checks(api: PublicApi, alice: ApiUser) -> None:
    service = await a_service(alice)
    own = await an_incident(alice, service)
    assert await opened(api, trigger(service)) != own["id"]


async def test_a_name_that_is_too_long_is_cut(api: PublicApi, alice: ApiUser) -> None:
    incident_id = await opened(api, trigger(await a_service(alice), name="x" * 300))
    assert len((await alice.get(f"{INCIDENTS}/{incident_id}")).body["name"]) == 255


@pytest.mark.parametrize("method", ["post", "put"])
async def test_a_check_cannot_name_a_service_that_is_not_there(
    alice: ApiUser, charlie: ApiUser, method: str
) -> None:
    path = "/v1/checks/api"
    if method == "put":
        path += f"/{(await alice.post(path, check_body('api'))).body['id']}"
    his = await a_service(charlie)
    refused = await getattr(alice, method)(path, check_body("api", triggerIncident=trigger(his)))
    said = f'"triggerIncident.serviceId" is {his}, and there is no service of status pages with'
    assert (refused.status, refused.body["message"]) == (400, f"{said} this id.")
    assert refused.body["validation"]["keys"] == ["triggerIncident.serviceId"]
    body = check_body("api", triggerIncident=trigger(await a_service(alice)))
    assert (await getattr(alice, method)(path, body)).status in (200, 201)
