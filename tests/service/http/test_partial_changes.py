"""A PUT keeps what its body leaves out, for every resource that has one."""

from typing import Any

import pytest

from service.vault.texts import HIDDEN
from tests.builders.alert_channels import CONFIGS, a_channel
from tests.builders.status_pages import (
    INCIDENTS,
    PAGES,
    SERVICES,
    a_page,
    a_service,
    an_incident,
    update_body,
)
from tests.servers.public_api import ApiUser

WINDOW: dict[str, Any] = {
    "name": "Nightly",
    "tags": ["shop"],
    "startsAt": "2026-12-01T01:00:00Z",
    "endsAt": "2026-12-01T02:00:00Z",
    "repeatInterval": 1,
    "repeatUnit": "DAY",
    "timeZone": "Europe/Berlin",
    "showOnStatusPages": True,
}
LOCATION = {
    "name": "Place",
    "slugName": "place",
    "icon": "server",
    "proxyUrl": "http://ada:pw@proxy.example:3128",
}
VARIABLE = {"key": "URL", "value": "https://shop.example", "locked": True}
TIMES = frozenset({"updated_at", "rawKey"})


def without_times(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in TIMES}


@pytest.mark.parametrize(
    ("path", "whole", "part"),
    [
        ("/v1/maintenance-windows", WINDOW, {"name": "Weekly"}),
        ("/v1/maintenance-windows", WINDOW, {"showOnStatusPages": False, "tags": None}),
        ("/v1/snippets", {"name": "login", "script": "exports.a = 1"}, {"name": "sign-in"}),
        ("/v1/snippets", {"name": "login", "script": "exports.a = 1"}, {"script": "exports.b = 2"}),
        ("/v1/variables", VARIABLE, {"locked": False}),
        ("/v1/variables", VARIABLE, {"value": "https://other.example"}),
    ],
)
async def test_a_change_of_some_fields_keeps_the_others(
    alice: ApiUser, path: str, whole: dict[str, Any], part: dict[str, Any]
) -> None:
    made = (await alice.post(path, whole)).body
    one = f"{path}/{made.get('id', made.get('key'))}"
    changed = await alice.put(one, part)
    assert changed.status == 200, changed.body
    lists = {name: made[name] for name, value in part.items() if value is None}
    assert without_times(changed.body) == without_times({**made, **part, **lists})
    assert (await alice.get(one)).body == changed.body


async def test_a_location_keeps_its_proxy_with_its_password(alice: ApiUser) -> None:
    made = (await alice.post("/v1/private-locations", LOCATION)).body
    one = f"/v1/private-locations/{made['id']}"
    changed = await alice.put(one, {"name": "Cellar"})
    assert changed.status == 200, changed.body
    assert (changed.body["name"], changed.body["icon"]) == ("Cellar", "server")
    assert changed.body["proxyUrl"] == LOCATION["proxyUrl"]
    assert (await alice.put(one, {"proxyUrl": None})).body["proxyUrl"] is None


async def test_a_secret_stays_and_cannot_become_readable_by_a_change(alice: ApiUser) -> None:
    await alice.post("/v1/variables", {"key": "PIN", "value": "4711", "secret": True})
    renamed = await alice.put("/v1/variables/PIN", {"key": "CODE"})
    assert (renamed.status, renamed.body["secret"], renamed.body["value"]) == (200, True, "")
    shown = await alice.put("/v1/variables/CODE", {"secret": False})
    assert shown.status == 400
    assert "4711" not in str(shown.body)
    assert HIDDEN not in str((await alice.get("/v1/variables/CODE")).body)


async def test_null_unsets_what_is_no_list(alice: ApiUser) -> None:
    made = (await alice.post("/v1/maintenance-windows", WINDOW)).body
    one = f"/v1/maintenance-windows/{made['id']}"
    changed = await alice.put(one, {"repeatInterval": None, "repeatUnit": None})
    assert changed.status == 200, changed.body
    assert (changed.body["repeatInterval"], changed.body["tags"]) == (None, ["shop"])


async def test_a_status_page_keeps_its_cards_its_look_and_its_key(alice: ApiUser) -> None:
    service = await a_service(alice)
    look = {
        "description": "What buyers see.",
        "customDomain": "status.shop.example",
        "defaultTheme": "DARK",
        "themeColors": {"light": {"linkFontColor": "#123456"}},
        "logo": "https://shop.example/logo.png",
        "isPrivate": True,
    }
    made = await a_page(alice, service, **look)
    one = f"{PAGES}/{made['id']}"
    stored = (await alice.get(one)).body
    for part in ({"name": "Shop"}, {"cards": None, "defaultTheme": "LIGHT"}, {}):
        changed = await alice.put(one, part)
        assert changed.status == 200, changed.body
        stored = {**stored, **{key: value for key, value in part.items() if value is not None}}
        assert without_times(changed.body) == without_times(stored)
    assert (await alice.put(one, {"description": None})).body["description"] is None


async def test_a_card_that_is_kept_was_not_updated(alice: ApiUser) -> None:
    made = await a_page(alice, await a_service(alice))
    changed = await alice.put(f"{PAGES}/{made['id']}", {"name": "Shop"})
    assert changed.body["cards"] == made["cards"]


async def test_a_service_of_status_pages_keeps_its_name(alice: ApiUser) -> None:
    one = f"{SERVICES}/{await a_service(alice, 'Checkout')}"
    kept = await alice.put(one, {})
    assert (kept.status, kept.body["name"]) == (200, "Checkout")


@pytest.mark.parametrize("part", [{"name": "Slow"}, {"severity": "MINOR", "services": None}])
async def test_an_incident_keeps_what_is_left_out(alice: ApiUser, part: dict[str, Any]) -> None:
    made = await an_incident(alice, await a_service(alice))
    one = f"{INCIDENTS}/{made['id']}"
    changed = await alice.put(one, part)
    assert changed.status == 200, changed.body
    volatile = ("updated_at", "duration")
    wanted = {**made, **{key: value for key, value in part.items() if value is not None}}
    assert {**changed.body, **dict.fromkeys(volatile)} == {**wanted, **dict.fromkeys(volatile)}


@pytest.mark.parametrize(
    "part", [{"description": "We know why."}, {"notifySubscribers": False}, {"status": "RESOLVED"}]
)
async def test_an_update_of_an_incident_keeps_what_is_left_out(
    alice: ApiUser, part: dict[str, Any]
) -> None:
    dated = {"publicIncidentUpdateDate": "2026-11-21T08:15:00.251Z", "notifySubscribers": True}
    told = update_body("IDENTIFIED", **dated)
    made = await an_incident(alice, await a_service(alice), incidentUpdates=[told])
    (before,) = made["incidentUpdates"]
    path = f"{INCIDENTS}/{made['id']}/incident-updates/{before['id']}"
    changed = await alice.put(path, part)
    assert (changed.status, changed.body) == (200, {**before, **part})


@pytest.mark.parametrize("kind", CONFIGS)
async def test_a_channel_keeps_its_secrets_and_its_subscriptions(alice: ApiUser, kind: str) -> None:
    channel = await a_channel(alice, kind, sendDegraded=True, sslExpiryThreshold=7)
    one = f"/v1/alert-channels/{channel}"
    group = (await alice.post("/v1/check-groups", {"name": "Shop"})).body["id"]
    await alice.put(f"{one}/subscriptions", {"groupId": group, "activated": True})
    made = (await alice.get(one)).body
    for part in ({"sendRecovery": False}, {"subscriptions": None}, {}):
        changed = await alice.put(one, {"type": kind, "config": {}, **part})
        assert changed.status == 200, changed.body
        wanted = {**made, "sendRecovery": False}
        assert without_times(changed.body) == without_times(wanted)


async def test_a_part_of_a_channels_config_is_changed_alone(alice: ApiUser) -> None:
    one = f"/v1/alert-channels/{await a_channel(alice, 'WEBHOOK')}"
    config = {"method": "POST", "headers": None, "url": HIDDEN, "template": None}
    changed = await alice.put(one, {"type": "WEBHOOK", "config": config})
    assert changed.status == 200, changed.body
    assert changed.body["config"] == {**CONFIGS["WEBHOOK"], "method": "POST", "template": None}
    emptied = (
        await alice.put(one, {"type": "WEBHOOK", "config": {"headers": [], "webhookSecret": None}})
    ).body
    assert (emptied["config"]["headers"], emptied["config"]["webhookSecret"]) == ([], None)


async def test_a_channel_of_another_type_keeps_nothing_of_its_config(alice: ApiUser) -> None:
    one = f"/v1/alert-channels/{await a_channel(alice, 'PAGERDUTY', sendDegraded=True)}"
    for part in ({"type": "OPSGENIE"}, {"type": "OPSGENIE", "config": {"apiKey": HIDDEN}}):
        refused = await alice.put(one, part)
        assert refused.status == 400
        assert "s3cr3t" not in str(refused.body)
    changed = await alice.put(one, {"type": "OPSGENIE", "config": {"apiKey": "new"}})
    assert (changed.status, changed.body["sendDegraded"]) == (200, True)
    assert changed.body["config"]["name"] == ""
