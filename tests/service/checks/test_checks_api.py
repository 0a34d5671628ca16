"""`/v1/checks/{type}`: checks are made, read, changed and deleted."""

import asyncio

import pytest
from sqlalchemy import select

from contract.checks import UrlSpec
from contract.wire import decode
from service.db.tables.checks import check_, heartbeat, schedule
from service.db.tables.runs import job
from tests.builders.check_bodies import LEAST, check_body, with_request
from tests.builders.made_checks import made
from tests.servers.public_api import ApiUser, PublicApi


@pytest.mark.parametrize("kind", LEAST)
async def test_a_check_of_each_type_is_made_read_changed_and_deleted(
    alice: ApiUser, kind: str
) -> None:
    check = await made(alice, kind)
    path = f"/v1/checks/{check['id']}"
    assert check["checkType"] == kind.upper()
    assert (await alice.get(path)).body == check

    changed = await alice.put(f"/v1/checks/{kind}/{check['id']}", check_body(kind, name="Other"))
    assert changed.status == 200
    assert changed.body["name"] == "Other"
    assert changed.body["created_at"] == check["created_at"]
    assert changed.body["updated_at"] is not None

    gone = await alice.delete(path)
    assert (gone.status, gone.body) == (204, "")
    assert (await alice.get(path)).status == 404
    assert (await alice.delete(path)).status == 404


async def test_every_default_is_filled_in(alice: ApiUser) -> None:
    check = await made(alice, "api")
    expected = {
        "activated": True,
        "muted": False,
        "doubleCheck": True,
        "shouldFail": False,
        "useGlobalAlertSettings": True,
        "runParallel": False,
        "frequency": 10,
        "degradedResponseTime": 5000,
        "maxResponseTime": 20_000,
        "tags": [],
        "updated_at": None,
        "setupSnippetId": None,
    }
    assert expected.items() <= check.items()
    assert check["request"]["ipFamily"] == "IPv4"
    assert check["request"]["bodyType"] == "NONE"
    assert check["alertChannels"] == {"email": [], "webhook": [], "slack": [], "sms": []}


async def test_what_is_sent_comes_back(alice: ApiUser) -> None:
    sent = check_body(
        "tcp", tags=["a", "b"], description="x" * 500, frequency=60, frequencyOffset=600
    )
    answer = await alice.post("/v1/checks/tcp?autoAssignAlerts=true", sent)
    assert answer.status == 201
    for key in ("name", "tags", "description", "frequency", "frequencyOffset", "privateLocations"):
        assert answer.body[key] == sent[key]


async def test_a_check_is_planned_and_its_spec_stored(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "url")
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    assert decode(row.spec, UrlSpec).request.url == "http://127.0.0.1/"
    planned = await api.database.read(lambda c: c.execute(select(schedule)).one())
    assert planned.check_id == check["id"]


async def test_a_check_that_is_not_activated_is_not_planned(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "url", activated=False)
    assert await api.database.read(lambda c: c.execute(select(schedule)).first()) is None
    await alice.put(f"/v1/checks/url/{check['id']}", {"activated": True})
    assert await api.database.read(lambda c: c.execute(select(schedule)).first()) is not None


async def test_a_deleted_check_leaves_no_runs(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "url")
    await alice.post("/v1/check-sessions/trigger")
    await alice.delete(f"/v1/checks/{check['id']}")
    assert await api.database.read(lambda c: c.execute(select(job)).first()) is None
    assert await api.database.read(lambda c: c.execute(select(schedule)).first()) is None


async def test_a_heartbeat_has_a_ping_address_that_stays(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "heartbeat")
    assert check["frequency"] == 1
    token = check["heartbeat"]["pingToken"]
    assert check["heartbeat"]["pingUrl"] == check["pingUrl"] == f"{alice.url}/ping/{token}"
    again = await alice.put(f"/v1/checks/heartbeat/{check['id']}", check_body("heartbeat"))
    assert again.body["heartbeat"]["pingToken"] == token
    watched = await api.database.read(lambda c: c.execute(select(heartbeat.c.token)).scalar_one())
    assert watched == token


async def test_a_ping_token_is_described_in_words(alice: ApiUser) -> None:
    own = {**LEAST["heartbeat"]["heartbeat"], "pingToken": "a b"}
    answer = await alice.post("/v1/checks/heartbeat", check_body("heartbeat", heartbeat=own))
    assert answer.body["message"] == (
        '"heartbeat.pingToken" must be letters a to z in either case, digits, dots, hyphens,'
        " underscores and tildes."
    )


async def test_a_ping_token_belongs_to_one_check(alice: ApiUser) -> None:
    own = {**LEAST["heartbeat"]["heartbeat"], "pingToken": "backup-of-alice"}
    await made(alice, "heartbeat", heartbeat=own)
    answer = await alice.post("/v1/checks/heartbeat", check_body("heartbeat", heartbeat=own))
    assert (answer.status, answer.body["error"]) == (409, "Conflict")
    assert (await alice.get("/v1/checks")).body[1:] == []


async def test_a_heartbeat_without_locations_is_judged_at_the_oldest_one(alice: ApiUser) -> None:
    answer = await alice.post("/v1/checks/heartbeat", LEAST["heartbeat"])
    assert answer.status == 201
    assert answer.body["privateLocations"] == []


async def test_a_region_is_served_by_a_private_location_of_its_name(alice: ApiUser) -> None:
    body = {**LEAST["url"], "locations": ["eu-west-1"]}
    refused = await alice.post("/v1/checks/url", body)
    assert refused.status == 400
    assert "eu-west-1" in refused.body["message"]
    assert refused.body["validation"] == {"source": "payload", "keys": ["locations[0]"]}
    await alice.post("/v1/private-locations", {"name": "Ireland", "slugName": "eu-west-1"})
    assert (await alice.post("/v1/checks/url", body)).status == 201


async def test_an_api_check_without_a_method_gets_its_address(alice: ApiUser) -> None:
    check = await made(alice, "api", request={"url": "https://shop.test/orders"})
    assert check["request"]["method"] == "GET"


async def test_fields_that_clients_send_back_are_passed_over(alice: ApiUser) -> None:
    check = await made(alice, "api", tags=["a"])
    zero = "0001-01-01T00:00:00Z"
    sent = {**check, "id": "", "created_at": zero, "updated_at": zero, "ofALaterVersion": 1}
    answer = await alice.put(f"/v1/checks/api/{check['id']}", sent)
    assert answer.status == 200
    assert answer.body["id"] == check["id"]
    assert answer.body["created_at"] == check["created_at"]


async def test_a_field_that_was_passed_over_is_named_in_a_header(alice: ApiUser) -> None:
    body = with_request("api", timeoutt=3, headers=[{"key": "a", "value": "b", "lookled": True}])
    typed = {**body, "maxRespTime": 5, "a\r\nset-cookie: x": 1, "id": "x"}
    answer = await alice.post("/v1/checks/api", typed)
    assert answer.status == 201
    ignored = (
        "?, maxRespTime (maxResponseTime?), request.headers[0].lookled (locked?), request.timeoutt"
    )
    assert answer.headers["x-ignored-fields"] == ignored
    again = await alice.put(f"/v1/checks/api/{answer.body['id']}", answer.body)
    assert "x-ignored-fields" not in again.headers


async def test_others_checks_are_not_there(alice: ApiUser, charlie: ApiUser) -> None:
    check = await made(alice, "url")
    path = f"/v1/checks/{check['id']}"
    assert (await charlie.get(path)).status == 404
    assert (await charlie.delete(path)).status == 404
    put = await charlie.put(f"/v1/checks/url/{check['id']}", check_body("url"))
    assert put.status == 404
    assert (await charlie.get("/v1/checks")).body == []
    assert (await alice.get(path)).status == 200


async def test_others_locations_cannot_be_used(alice: ApiUser, charlie: ApiUser) -> None:
    await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    body = check_body("url", privateLocations=["cellar"])
    answer = await charlie.post("/v1/checks/url", body)
    assert answer.status == 400


async def test_many_checks_at_once_are_all_kept(alice: ApiUser) -> None:
    await asyncio.gather(*(made(alice, name=f"c{number}") for number in range(40)))
    listed = (await alice.get("/v1/checks?limit=100")).body
    assert len({check["id"] for check in listed}) == 40
