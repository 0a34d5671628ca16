"""A PUT keeps what its body leaves out, for every resource that has one."""

from typing import Any

import pytest

from service.vault.texts import HIDDEN
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
