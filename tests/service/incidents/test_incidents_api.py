import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.status_pages import (
    a_service,
    an_incident,
    incident_body,
    say,
    update_body,
)
from tests.fakes.clock import FakeClock
from tests.servers.public_api import ApiUser, PublicApi

INCIDENTS = "/v1/status-pages/incidents"


@pytest.fixture
def clock(api: PublicApi) -> FakeClock:
    """The time of the API stands still."""
    clock = FakeClock()
    api.app.state.backend = replace(api.backend, clock=clock)
    return clock


async def test_an_incident_is_made_read_changed_and_deleted(
    alice: ApiUser, clock: FakeClock
) -> None:
    checkout, login = await a_service(alice), await a_service(alice, "Login")
    answer = await alice.post(INCIDENTS, incident_body(checkout, login))
    assert answer.status == 201, answer.body
    first = answer.body
    path = f"{INCIDENTS}/{first['id']}"
    (update,) = first["incidentUpdates"]
    assert update == {
        "id": update["id"],
        "description": "It is investigating.",
        "status": "INVESTIGATING",
        "publicIncidentUpdateDate": "2026-11-21T10:00:00.000Z",
        "notifySubscribers": False,
        "created_at": "2026-11-21T10:00:00.000Z",
    }
    assert {name: first[name] for name in ("name", "severity", "lastUpdateStatus", "duration")} == {
        "name": "Orders fail",
        "severity": "MAJOR",
        "lastUpdateStatus": "INVESTIGATING",
        "duration": 0,
    }
    assert [one["name"] for one in first["services"]] == ["Checkout", "Login"]
    assert {one["accountId"] for one in first["services"]} == {alice.secrets.account_id}
    assert (await alice.get(path)).body == first
    clock.pass_s(90)
    changed = await alice.put(path, {**first, "name": "Pay", "services": [{"id": login}]})
    assert changed.status == 200, changed.body
    assert (changed.body["name"], changed.body["duration"]) == ("Pay", 90)
    assert [one["id"] for one in changed.body["services"]] == [login]
    assert changed.body["incidentUpdates"] == [update]
    assert (await alice.delete(path)).status == 204
    for method in ("get", "delete"):
        assert (await getattr(alice, method)(path)).status == 404


async def test_an_update_is_made_read_changed_and_deleted(alice: ApiUser, clock: FakeClock) -> None:
    incident = await an_incident(alice, await a_service(alice))
    path = f"{INCIDENTS}/{incident['id']}/incident-updates"
    clock.pass_s(60)
    made = await alice.post(path, update_body("MONITORING"))
    assert made.status == 200
    one = f"{path}/{made.body['id']}"
    assert (await alice.get(one)).body == made.body
    listed = (await alice.get(path)).body
    assert [each["status"] for each in listed] == ["MONITORING", "INVESTIGATING"]
    changed = await alice.put(one, update_body("RESOLVED", description="It works again."))
    assert changed.status == 200
    assert changed.body == {
        **made.body,
        "status": "RESOLVED",
        "description": "It works again.",
    }
    read = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert (read["lastUpdateStatus"], read["duration"]) == ("RESOLVED", 60)
    assert (await alice.delete(one)).status == 204
    assert (await alice.get(one)).status == 404
    read = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert read["lastUpdateStatus"] == "INVESTIGATING"


async def test_the_only_update_of_an_incident_stays(alice: ApiUser) -> None:
    incident = await an_incident(alice, await a_service(alice))
    (update,) = incident["incidentUpdates"]
    path = f"{INCIDENTS}/{incident['id']}/incident-updates/{update['id']}"
    answer = await alice.delete(path)
    assert (answer.status, answer.body["message"]) == (
        409,
        f"The update {update['id']} is the only one of its incident; delete the incident instead.",
    )


async def test_updates_that_come_together_keep_their_order(
    alice: ApiUser, clock: FakeClock
) -> None:
    said = ["INVESTIGATING", "IDENTIFIED", "MONITORING", "RESOLVED"] * 3
    body = incident_body(await a_service(alice), incidentUpdates=[update_body(one) for one in said])
    made = (await alice.post(INCIDENTS, body)).body
    assert [one["status"] for one in reversed(made["incidentUpdates"])] == said
    assert made["lastUpdateStatus"] == "RESOLVED"


async def test_of_two_who_resolve_at_once_the_first_one_closes(
    alice: ApiUser, clock: FakeClock
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    clock.pass_s(30)
    await asyncio.gather(*(say(alice, incident, "RESOLVED") for _ in "12"))
    clock.pass_s(30)
    await say(alice, incident, "RESOLVED")
    read = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert (read["duration"], len(read["incidentUpdates"])) == (30, 4)


async def test_an_update_can_be_for_a_time_before_or_to_come(
    alice: ApiUser, clock: FakeClock
) -> None:
    earlier = update_body(publicIncidentUpdateDate="2026-11-21T10:40:00+01:00")
    body = incident_body(await a_service(alice), incidentUpdates=[earlier])
    incident = (await alice.post(INCIDENTS, body)).body
    assert incident["duration"] == 20 * 60
    to_come = "2026-11-21T10:30:00Z"
    await say(alice, incident, "RESOLVED", publicIncidentUpdateDate=to_come)
    path = f"{INCIDENTS}/{incident['id']}"
    assert (await alice.get(path)).body["lastUpdateStatus"] == "INVESTIGATING"
    clock.pass_s(3600)
    read = (await alice.get(path)).body
    assert (read["lastUpdateStatus"], read["duration"]) == ("RESOLVED", 50 * 60)


async def test_the_zero_time_of_clients_written_in_go_means_now(
    alice: ApiUser, clock: FakeClock
) -> None:
    zero = update_body(publicIncidentUpdateDate="0001-01-01T00:00:00Z")
    incident = await an_incident(alice, await a_service(alice), incidentUpdates=[zero])
    (update,) = incident["incidentUpdates"]
    assert update["publicIncidentUpdateDate"] == update["created_at"]


async def test_a_list_goes_on_where_it_was_left_whatever_comes_meanwhile(alice: ApiUser) -> None:
    service = await a_service(alice)
    made = [(await an_incident(alice, service, name=f"n{order}"))["id"] for order in range(5)]
    first = (await alice.get(f"{INCIDENTS}?limit=2")).body
    assert (first["length"], len(first["entries"])) == (2, 2)
    new = (await an_incident(alice, service, name="new"))["id"]
    await alice.delete(f"{INCIDENTS}/{first['nextId']}")
    second = (await alice.get(f"{INCIDENTS}?limit=2&nextId={first['nextId']}")).body
    third = (await alice.get(f"{INCIDENTS}?limit=2&nextId={second['nextId']}")).body
    seen = [one["id"] for part in (first, second, third) for one in part["entries"]]
    assert seen == [*reversed(made)]
    assert new not in seen
    assert (third["length"], third["nextId"]) == (1, None)
    assert (await alice.get(INCIDENTS)).body["entries"][0]["id"] == new
    for query in ("limit=0", "limit=101", "page=2"):
        assert (await alice.get(f"{INCIDENTS}?{query}")).status == 400


async def test_an_answer_holds_the_100_newest_updates(alice: ApiUser) -> None:
    many = [update_body(description=f"n{order}") for order in range(100)]
    incident = await an_incident(alice, await a_service(alice), incidentUpdates=many)
    await say(alice, incident, "RESOLVED")
    path = f"{INCIDENTS}/{incident['id']}"
    for listed in (
        (await alice.get(path)).body["incidentUpdates"],
        (await alice.get(f"{path}/incident-updates")).body,
    ):
        assert [len(listed), listed[0]["status"], listed[-1]["description"]] == [
            100,
            "RESOLVED",
            "n1",
        ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "x" * 256}, '"name" has 256 characters'),
        ({"name": ""}, '"name" must not be empty'),
        ({"severity": "HIGH"}, '"severity" is HIGH; use'),
        ({"services": []}, '"services" must not be empty'),
        (
            {"services": [{"id": "none"}]},
            '"services" is none, and there is no service of status pages with this id.',
        ),
        ({"incidentUpdates": []}, '"incidentUpdates" must not be empty'),
        ({"incidentUpdates": [{"status": "RESOLVED"}]}, '"incidentUpdates[0].description" is miss'),
        (
            {"incidentUpdates": [update_body("DONE")]},
            '"incidentUpdates[0].status" is DONE; use',
        ),
        (
            {"incidentUpdates": [update_body(publicIncidentUpdateDate="soon")]},
            '"incidentUpdates[0].publicIncidentUpdateDate" is no time; use ISO 8601',
        ),
    ],
)
async def test_what_cannot_be_an_incident_is_refused_in_a_sentence(
    alice: ApiUser, changes: dict[str, Any], said: str
) -> None:
    body = {**incident_body(await a_service(alice)), **changes}
    answer = await alice.post(INCIDENTS, body)
    assert (answer.status, answer.body["message"][: len(said)]) == (400, said)


async def test_charlies_incident_cannot_touch_alices_service(
    alice: ApiUser, charlie: ApiUser
) -> None:
    hers = await a_service(alice)
    assert (await charlie.post(INCIDENTS, incident_body(hers))).status == 400
    incident = await an_incident(alice, hers)
    assert (await charlie.get(INCIDENTS)).body["entries"] == []
    path = f"{INCIDENTS}/{incident['id']}/incident-updates"
    assert (await charlie.post(path, update_body())).status == 404
