from dataclasses import replace
from typing import Any

import pytest

from tests.builders.made_checks import made
from tests.builders.status_pages import SERVICES, a_page, a_service, an_incident, say
from tests.fakes.clock import FakeClock
from tests.servers.public_api import Answer, ApiUser, PublicApi

DAY_S = 86_400
INCIDENT = {"severity": "MAJOR", "name": "x", "description": "x", "notifySubscribers": False}


@pytest.fixture
def clock(api: PublicApi) -> FakeClock:
    """The time of the API stands still."""
    clock = FakeClock()
    api.app.state.backend = replace(api.backend, clock=clock)
    return clock


async def visit(api: PublicApi, **headers: str) -> Answer:
    """The page as somebody without an API key sees it."""
    async with api.http.get(f"{api.url}/status-pages/shop.json", headers=headers) as answer:
        body = await answer.json() if answer.status != 304 else None
        return Answer(answer.status, body, {k.lower(): v for k, v in answer.headers.items()})


async def test_everybody_sees_the_page_and_nothing_internal(
    api: PublicApi, alice: ApiUser, clock: FakeClock
) -> None:
    checkout, login = await a_service(alice), await a_service(alice, "Login")
    hidden = await a_service(alice, "Internal billing")
    await a_page(alice, checkout, login, description="How the shop is.")
    incident = await an_incident(alice, checkout, hidden, severity="MINOR")
    seen = await visit(api)
    assert seen.status == 200
    assert seen.body == {
        "name": "Shop status",
        "url": "shop",
        "description": "How the shop is.",
        "customDomain": None,
        "logo": None,
        "redirectTo": None,
        "favicon": None,
        "defaultTheme": "AUTO",
        "themeColors": None,
        "state": "MINOR",
        "cards": [
            {
                "name": "Shop",
                "services": [
                    {"id": checkout, "name": "Checkout", "state": "MINOR"},
                    {"id": login, "name": "Login", "state": "OPERATIONAL"},
                ],
            }
        ],
        "currentIncidents": [
            {
                "id": incident["id"],
                "name": "Orders fail",
                "severity": "MINOR",
                "status": "INVESTIGATING",
                "serviceIds": [checkout],
                "startedAt": "2026-11-21T10:00:00.000Z",
                "resolvedAt": None,
                "updates": [
                    {
                        "status": "INVESTIGATING",
                        "description": "It is investigating.",
                        "date": "2026-11-21T10:00:00.000Z",
                    }
                ],
            }
        ],
        "pastIncidents": [],
        "scheduledMaintenance": [],
    }
    assert alice.secrets.account_id not in str(seen.body)


async def test_maintenance_is_announced_for_the_services_of_its_checks_if_it_is_wanted(
    api: PublicApi, alice: ApiUser, clock: FakeClock
) -> None:
    checkout, login, mail = [await a_service(alice, name) for name in ("Checkout", "Login", "Mail")]
    await a_page(alice, checkout, login, mail)
    for service, tag in ((checkout, "pay"), (login, "web"), (mail, "web")):
        incident = {**INCIDENT, "serviceId": service}
        await made(alice, tags=[tag], triggerIncident=incident)
    days = {"startsAt": "2026-11-21T09:00:00Z", "endsAt": "2026-11-21T12:00:00Z"}
    next_week = {"startsAt": "2026-11-28T09:59:00Z", "endsAt": "2026-11-28T12:00:00Z"}
    later = {"startsAt": "2026-11-28T10:01:00Z", "endsAt": "2026-11-28T12:00:00Z"}
    for body in (
        {"name": "Internal", **days},
        {"name": "New servers", "tags": ["web"], "showOnStatusPages": True, **next_week},
        {"name": "Bank holiday", "tags": ["pay"], "showOnStatusPages": True, **days},
        {"name": "No check of ours", "tags": ["x"], "showOnStatusPages": True, **days},
        {"name": "Too early to say", "showOnStatusPages": True, **later},
    ):
        assert (await alice.post("/v1/maintenance-windows", body)).status == 201

    seen = await visit(api)

    assert seen.body["scheduledMaintenance"] == [
        {
            "name": "Bank holiday",
            "serviceIds": [checkout],
            "startsAt": "2026-11-21T09:00:00.000Z",
            "endsAt": "2026-11-21T12:00:00.000Z",
        },
        {
            "name": "New servers",
            "serviceIds": [login, mail],
            "startsAt": "2026-11-28T09:59:00.000Z",
            "endsAt": "2026-11-28T12:00:00.000Z",
        },
    ]
    assert seen.body["state"] == "OPERATIONAL"


async def test_a_service_has_the_worst_state_of_its_open_incidents(
    api: PublicApi, alice: ApiUser
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    await an_incident(alice, service, severity="MEDIUM")
    worst = await an_incident(alice, service, severity="CRITICAL")
    assert (await visit(api)).body["state"] == "CRITICAL"
    await say(alice, worst, "RESOLVED")
    assert (await visit(api)).body["state"] == "MEDIUM"


async def test_incidents_that_were_closed_within_90_days_are_past_ones(
    api: PublicApi, alice: ApiUser, clock: FakeClock
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    incident = await an_incident(alice, service)
    clock.pass_s(60)
    await say(alice, incident, "RESOLVED")
    clock.pass_s(90 * DAY_S)
    (past,) = (await visit(api)).body["pastIncidents"]
    assert (past["startedAt"], past["resolvedAt"]) == (
        "2026-11-21T10:00:00.000Z",
        "2026-11-21T10:01:00.000Z",
    )
    clock.pass_s(1)
    assert (await visit(api)).body["pastIncidents"] == []


async def test_what_is_to_come_is_not_shown(
    api: PublicApi, alice: ApiUser, clock: FakeClock
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    update: dict[str, Any] = {
        "description": "x",
        "publicIncidentUpdateDate": "2026-11-22T00:00:00Z",
    }
    await an_incident(alice, service, incidentUpdates=[update])
    assert (await visit(api)).body["currentIncidents"] == []
    clock.pass_s(DAY_S)
    assert len((await visit(api)).body["currentIncidents"]) == 1


async def test_an_answer_is_not_sent_again_until_something_happens(
    api: PublicApi, alice: ApiUser, clock: FakeClock
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    await an_incident(alice, service)
    first = await visit(api)
    assert first.headers["cache-control"] == "public, max-age=15"
    assert first.headers["access-control-allow-origin"] == "*"
    clock.pass_s(3600)
    again = await visit(api, **{"if-none-match": first.headers["etag"]})
    assert again.status == 304
    await alice.put(f"{SERVICES}/{service}", {"name": "Pay"})
    changed = await visit(api, **{"if-none-match": first.headers["etag"]})
    assert (changed.status, changed.body["cards"][0]["services"][0]["name"]) == (200, "Pay")


async def test_a_private_page_is_there_for_its_key_alone(api: PublicApi, alice: ApiUser) -> None:
    page = await a_page(alice, isPrivate=True)
    key = page["keys"][0]["rawKey"]
    none, wrong, of_account = [
        await visit(api, **headers)
        for headers in (
            {},
            {"authorization": "Bearer sp_wrong"},
            {"authorization": f"Bearer {alice.secrets.api_key}"},
        )
    ]
    assert {one.status for one in (none, wrong, of_account)} == {404}
    seen = await visit(api, authorization=f"Bearer {key}")
    assert (seen.status, seen.headers["cache-control"]) == (200, "private, no-cache")
    assert "access-control-allow-origin" not in seen.headers
    assert key not in str(seen.body)


async def test_a_page_that_is_not_there_answers_as_a_private_one(
    api: PublicApi, alice: ApiUser
) -> None:
    missing = await visit(api)
    await a_page(alice, isPrivate=True)
    private = await visit(api)
    assert (missing.status, missing.body) == (private.status, private.body)
