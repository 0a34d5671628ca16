"""What a check says about things that come later is kept as it was sent, and told again."""

from typing import Any

import pytest

from service.routers import document
from tests.builders.alert_channels import a_channel
from tests.builders.any_check import TYPES, least_body
from tests.builders.check_bodies import check_body
from tests.builders.status_pages import a_service
from tests.servers.public_api import ApiUser

LATER: dict[str, Any] = {
    "useGlobalAlertSettings": False,
    "alertSettings": {
        "escalationType": "TIME_BASED",
        "runBasedEscalation": {"failedRunThreshold": 5},
        "timeBasedEscalation": {"minutesFailingThreshold": 30},
        "reminders": {"amount": 100_000, "interval": 30},
        "parallelRunFailureThreshold": {"enabled": True, "percentage": 100},
    },
    "triggerIncident": {
        "serviceId": "b1c1",
        "severity": "CRITICAL",
        "name": "Shop is down",
        "description": "Nobody can buy.",
        "notifySubscribers": True,
    },
    "muted": True,
    "doubleCheck": False,
    "groupOrder": 3,
    "description": "What buyers see first.",
}
STRATEGY = {
    "type": "LINEAR",
    "baseBackoffSeconds": 7,
    "sameRegion": False,
    "maxRetries": 3,
    "maxDurationSeconds": 90,
    "onlyOn": ["NETWORK_ERROR"],
}
REFUSED = {
    "playwright": {"retryStrategy"},
    "agentic": {"retryStrategy", "triggerIncident", "groupId", "runParallel"},
}
"""What a type does not have is not kept, either; the types' own tests say how it is refused."""
SCRIPTED = {"browser", "multistep"}
"""Types that consist of a script."""
ZERO = "0001-01-01T00:00:00Z"


async def what_is_kept(user: ApiUser, kind: str) -> dict[str, Any]:
    """The fields that a type keeps, each unlike its default."""
    service = await a_service(user)
    group = (await user.post("/v1/check-groups", {"name": "Shop"})).body
    runs = {"groupId": group["id"], "retryStrategy": STRATEGY, "runParallel": True}
    incident = {**LATER["triggerIncident"], "serviceId": service}
    subscriptions = [
        {"alertChannelId": await a_channel(user), "activated": activated}
        for activated in (True, False)
    ]
    sent = {"triggerIncident": incident, "alertChannelSubscriptions": subscriptions}
    every = {**LATER, **runs, **sent}
    return {name: every[name] for name in every.keys() - REFUSED.get(kind, set())}


@pytest.mark.parametrize("kind", TYPES)
async def test_what_later_features_need_is_kept_by_every_type(alice: ApiUser, kind: str) -> None:
    kept = await what_is_kept(alice, kind)
    least = await least_body(alice, kind)
    made = await alice.post(f"/v1/checks/{kind}", {**least, **kept})
    assert made.status == 201, made.body
    read = (await alice.get(f"/v1/checks/{made.body['id']}")).body
    (listed,) = (await alice.get("/v1/checks")).body
    for shown in (made.body, read, listed):
        assert {name: shown[name] for name in kept} == kept
    path = f"/v1/checks/{kind}/{made.body['id']}"
    again = await alice.put(path, {**read, "created_at": ZERO, "updated_at": ZERO, "id": ""})
    assert again.status == 200, again.body
    assert {name: again.body[name] for name in kept} == kept
    for part in (least, {}, {"activated": False}):
        changed = (await alice.put(path, part)).body
        assert {name: changed[name] for name in kept} == kept
    optional = kept.keys() & {"groupId", "groupOrder", "description", "triggerIncident"}
    bare = (await alice.put(path, dict.fromkeys(optional))).body
    assert {bare[name] for name in optional} == {None}


async def test_a_change_keeps_what_it_leaves_out(alice: ApiUser) -> None:
    assertion = {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}
    secret = {"key": "TOKEN", "value": "hunter2", "secret": True}
    request = {"method": "POST", "url": "http://shop.test/", "assertions": [assertion]}
    body = check_body(
        "api", tags=["shop"], frequency=0, frequencyOffset=20, environmentVariables=[secret]
    )
    made = (await alice.post("/v1/checks/api", {**body, "request": request})).body
    path = f"/v1/checks/{made['id']}"

    def without_time(check: dict[str, Any]) -> dict[str, Any]:
        return {**check, "updated_at": None}

    paused = await alice.put(path, {"activated": False, "tags": None, "privateLocations": None})
    assert without_time(paused.body) == {**made, "activated": False}
    moved = await alice.put(path, {"request": {"url": "http://new.test/"}, "frequency": 5})
    assert moved.body["request"] == {**made["request"], "url": "http://new.test/"}
    assert (moved.body["frequency"], moved.body["frequencyOffset"]) == (5, None)
    emptied = await alice.put(f"/v1/checks/api/{made['id']}", {"tags": []})
    assert (emptied.body["tags"], emptied.body["environmentVariables"]) == (
        [],
        made["environmentVariables"],
    )


@pytest.mark.parametrize("kind", TYPES)
async def test_what_is_kept_stands_in_the_document(alice: ApiUser, kind: str) -> None:
    body = document()["paths"][f"/v1/checks/{kind}"]["post"]["requestBody"]
    model = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document()["components"]["schemas"][model]
    assert (await what_is_kept(alice, kind)).keys() <= schema["properties"].keys()


async def test_zeros_and_empty_ids_are_none(alice: ApiUser) -> None:
    empty = {
        "id": "",
        "groupId": 0,
        "setupSnippetId": 0,
        "tearDownSnippetId": 0,
        "runtimeId": "",
        "created_at": ZERO,
        "updated_at": ZERO,
        "alertChannelSubscriptions": None,
        "localSetupScript": "",
        "triggerIncident": None,
        "alertSettings": None,
    }
    made = await alice.post("/v1/checks/api", check_body("api", **empty))
    assert made.status == 201, made.body
    none = ("groupId", "setupSnippetId", "runtimeId", "triggerIncident", "alertSettings")
    assert {made.body[name] for name in none} == {None}
    assert made.body["alertChannelSubscriptions"] == []


async def test_a_region_runs_what_names_it_once_somebody_has_agents_there(alice: ApiUser) -> None:
    """`locations` names regions, `privateLocations` everything else."""
    body = check_body("url", locations=["eu-west-1"], privateLocations=[])
    refused = await alice.post("/v1/checks/url", body)
    assert refused.status == 400
    assert "nothing runs there" in refused.body["message"]
    place = await alice.post("/v1/private-locations", {"name": "Ireland", "slugName": "eu-west-1"})
    assert place.body["keys"][0]["rawKey"].startswith("pl_")
    check = (await alice.post("/v1/checks/url", body)).body
    target = {"target": {"checkId": [check["id"]]}}
    (session,) = (await alice.post("/v1/check-sessions/trigger", target)).body["sessions"]
    assert session["runLocations"] == ["eu-west-1"]


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in SCRIPTED])
async def test_a_script_is_kept_with_a_check_that_does_not_run_it(
    alice: ApiUser, kind: str
) -> None:
    body = {**await least_body(alice, kind), "checkType": TYPES[kind]}
    made = await alice.post("/v1/checks", {**body, "script": "exports.a = 1"})
    assert (made.status, made.body.get("script")) == (201, "exports.a = 1"), made.body
    assert "x-ignored-fields" not in made.headers
    general, own = (f"/v1/checks{part}/{made.body['id']}" for part in ("", f"/{kind}"))
    for path in (general, own):
        renamed = await alice.put(path, {"name": path, "checkType": TYPES[kind]})
        assert (renamed.status, renamed.body.get("script")) == (200, "exports.a = 1")
    assert (await alice.get(general)).body["script"] == "exports.a = 1"
    removed = await alice.put(general, {"script": None, "checkType": TYPES[kind]})
    assert (removed.status, "script" in removed.body) == (200, False)
