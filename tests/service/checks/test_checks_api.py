import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from contract.checks import UrlSpec
from contract.wire import decode
from service.db.tables.checks import check_, heartbeat, schedule
from service.db.tables.runs import job
from tests.builders.check_bodies import LEAST, check_body, with_request
from tests.servers.public_api import ApiUser, PublicApi


async def made(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


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
    await alice.put(f"/v1/checks/url/{check['id']}", check_body("url"))
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


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind != "heartbeat"])
async def test_another_check_needs_a_location(alice: ApiUser, kind: str) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", LEAST[kind])
    assert answer.status == 400
    assert answer.body["message"] == "You have to set at least one `location` or `privateLocation`"
    assert answer.body["validation"]["keys"] == ["locations", "privateLocations"]


async def test_a_region_is_served_by_a_private_location_of_its_name(alice: ApiUser) -> None:
    body = {**LEAST["url"], "locations": ["eu-west-1"]}
    refused = await alice.post("/v1/checks/url", body)
    assert refused.status == 400
    assert "eu-west-1" in refused.body["message"]
    assert refused.body["validation"] == {"source": "payload", "keys": ["locations[0]"]}
    await alice.post("/v1/private-locations", {"name": "Ireland", "slugName": "eu-west-1"})
    assert (await alice.post("/v1/checks/url", body)).status == 201


async def test_a_private_location_among_the_regions_is_told_where_it_belongs(
    alice: ApiUser,
) -> None:
    refused = await alice.post("/v1/checks/url", {**LEAST["url"], "locations": ["default"]})
    assert refused.status == 400
    assert refused.body["message"].startswith(
        '"locations[0]" is default, which is no region; a private location belongs in'
        ' "privateLocations", and the regions are us-east-1, '
    )
    assert refused.body["validation"] == {"source": "payload", "keys": ["locations[0]"]}


async def test_a_number_in_quotes_is_told_to_lose_them(alice: ApiUser) -> None:
    refused = await alice.post("/v1/checks/url", check_body("url", frequency="5"))
    assert refused.body["message"] == (
        '"frequency" is "5"; use a number, without quotes: one of 1, 2, 5, 10, 15, 30, 60,'
        " 120, 180, 360, 720, 1440."
    )


@pytest.mark.parametrize(("sent", "meant"), [("tags", "tag"), ("checktype", "checkType")])
async def test_a_misspelt_filter_is_refused_instead_of_passed_over(
    alice: ApiUser, sent: str, meant: str
) -> None:
    refused = await alice.get(f"/v1/checks?{sent}=shop")
    assert refused.status == 400
    assert refused.body["message"] == f'"{sent}" is not known here, where {meant} may be meant.'
    assert refused.body["validation"] == {"source": "query", "keys": [sent]}
    assert (await alice.get("/v1/checks?deployment=shop")).status == 200


async def test_an_unknown_private_location_is_named_by_its_place(alice: ApiUser) -> None:
    body = check_body("url", privateLocations=["default", "attic"])
    answer = await alice.post("/v1/checks/url", body)
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == ["privateLocations[1]"]
    assert "there are default" in answer.body["message"]


async def test_all_wrong_fields_are_told_at_once(alice: ApiUser) -> None:
    body = check_body("icmp", frequency=3, request={"hostname": "", "pingCount": 0})
    answer = await alice.post("/v1/checks/icmp", body)
    assert answer.body["validation"]["keys"] == [
        "frequency",
        "request.hostname",
        "request.pingCount",
    ]
    assert answer.body["message"] == (
        '"frequency" is 3; use one of 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.'
        ' "request.hostname" must not be empty. "request.pingCount" is 0; use at least 1.'
    )


@pytest.mark.parametrize("kind", LEAST)
async def test_frequency_0_is_offered_to_the_types_that_may_have_it(
    alice: ApiUser, kind: str
) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", check_body(kind, frequency=3))
    zero = "0, " if kind in {"api", "tcp"} else ""
    assert answer.body["message"] == (
        f'"frequency" is 3; use one of {zero}1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.'
    )


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind not in {"api", "tcp"}])
async def test_frequency_0_of_another_type_is_refused_with_the_reason(
    alice: ApiUser, kind: str
) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", check_body(kind, frequency=0))
    assert answer.body["validation"]["keys"] == ["frequency"]
    assert answer.body["message"] == (
        '"frequency" is 0, which only API and TCP checks may have; use 1 or more.'
    )


async def test_a_wrong_secret_is_not_repeated(alice: ApiUser) -> None:
    auth = {"username": "u", "password": ["hunter2"]}
    answer = await alice.post("/v1/checks/api", with_request("api", basicAuth=auth))
    assert answer.status == 400
    assert "hunter2" not in str(answer.body)


@pytest.mark.parametrize(
    ("field", "given", "mend"),
    [
        (
            "basicAuth",
            {"username": "u", "password": "hunter2"},
            "a URL check asks without it; put user and password into the url, or use an API check",
        ),
        *(
            (field, given, "a URL check asks for its url and no more; use an API check")
            for field, given in (
                ("headers", [{"key": "a", "value": "hunter2"}]),
                ("queryParameters", [{"key": "a", "value": "hunter2"}]),
                ("body", "hunter2"),
            )
        ),
    ],
)
async def test_what_a_url_check_would_not_send_is_refused(
    alice: ApiUser, field: str, given: Any, mend: str
) -> None:
    """It would look at something else than was meant, and find it up or down."""
    refused = await alice.post("/v1/checks/url", with_request("url", **{field: given}))
    assert refused.status == 400
    assert refused.body["message"] == f'"request.{field}" would not be sent: {mend}.'
    assert refused.body["validation"]["keys"] == [f"request.{field}"]
    nothing = {"username": "", "password": ""} if field == "basicAuth" else type(given)()
    for empty in (nothing, None):
        await made(alice, "url", request={"url": "http://shop.test/", field: empty})


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


async def test_a_put_of_a_part_is_told_that_the_whole_is_replaced(alice: ApiUser) -> None:
    check = await made(alice, "url")
    path = f"/v1/checks/url/{check['id']}"
    answer = await alice.put(path, {"name": "Another name"})
    assert answer.status == 400
    assert answer.body["message"] == (
        '"request" is missing. PUT replaces the whole: send every field, those that stay as well.'
    )
    assert answer.body["validation"]["keys"] == ["request"]
    assert "PUT" not in (await alice.post("/v1/checks/url", {"name": "New"})).body["message"]
    assert (await alice.put(path, {**check, "name": "Another name"})).status == 200


async def test_a_put_to_another_type_is_told_where_to_go(alice: ApiUser) -> None:
    check = await made(alice, "url")
    answer = await alice.put(f"/v1/checks/tcp/{check['id']}", check_body("tcp"))
    assert answer.status == 400
    assert f"/v1/checks/url/{check['id']}" in answer.body["message"]


async def test_a_list_has_pages(alice: ApiUser) -> None:
    ids = [(await made(alice, name=f"c{number}"))["id"] for number in range(3)]
    pages = [(await alice.get(f"/v1/checks?limit=2&page={page}")).body for page in (1, 2, 3)]
    assert [[check["id"] for check in page] for page in pages] == [ids[:2], ids[2:], []]


async def test_a_list_can_be_narrowed(alice: ApiUser) -> None:
    await made(alice, "url", name="Shop 100%", tags=["prod", "web"])
    await made(alice, "tcp", name="Mail", tags=["prod"])
    await made(alice, "api", name="Orders", tags=["Webhooks"])

    async def names(query: str) -> list[str]:
        answer = await alice.get(f"/v1/checks?{query}")
        assert answer.status == 200, answer.body
        return [check["name"] for check in answer.body]

    assert await names("tag=prod") == ["Shop 100%", "Mail"]
    assert await names("tag=prod&tag=web") == ["Shop 100%"]
    assert await names("checkType=TCP") == ["Mail"]
    assert await names("search=shop") == ["Shop 100%"]
    assert await names("search=WEB") == ["Shop 100%", "Orders"]
    assert await names("search=0%25") == ["Shop 100%"]
    assert await names("search=_ail") == []
    assert await names("apiCheckUrlFilterPattern=shop.test") == ["Orders"]
    assert await names("status=failing") == []


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("page=-1", "page"),
        ("page=9223372036854775808", "page"),
        ("checkType=CAKE", "checkType"),
        ("status=fine", "status"),
    ],
)
async def test_a_wrong_query_is_named(alice: ApiUser, query: str, key: str) -> None:
    answer = await alice.get(f"/v1/checks?{query}")
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "query", "keys": [key]}


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


@pytest.mark.parametrize(
    "query",
    [
        "search=" + "a" * 1001,
        "apiCheckUrlFilterPattern=" + "a" * 2049,
        "&".join(f"tag=t{order}" for order in range(51)),
    ],
    ids=["search", "url", "tags"],
)
async def test_a_filter_that_the_database_could_not_take_is_refused(
    alice: ApiUser, query: str
) -> None:
    assert (await alice.get(f"/v1/checks?{query}")).status == 400


async def test_each_list_in_pages_tells_of_its_next_page(alice: ApiUser) -> None:
    await alice.post("/v1/checks/url", check_body("url", tags=["a b"]))
    for name in ("one", "two"):
        await alice.post("/v1/checks/url", check_body("url", name=name, tags=["a b"]))
        await alice.post("/v1/snippets", {"name": name, "script": "1"})
        await alice.post("/v1/variables", {"key": name.upper(), "value": "1"})
    for path in ("/v1/checks", "/v1/snippets", "/v1/variables"):
        first = await alice.get(f"{path}?limit=1")
        assert first.headers["link"] == f'<{alice.url}{path}?limit=1&page=2>; rel="next"'
        assert "link" not in (await alice.get(f"{path}?limit=3")).headers
    tagged = await alice.get("/v1/checks?tag=a%20b&tag=a%20b&limit=2")
    assert (
        tagged.headers["link"]
        == f'<{alice.url}/v1/checks?tag=a+b&tag=a+b&limit=2&page=2>; rel="next"'
    )
    assert len((await alice.get("/v1/checks?tag=a+b&limit=2&page=2")).body) == 1
