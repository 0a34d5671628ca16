"""`/v1/check-groups` and `/v2/check-groups`, and what the checks of a group have of it."""

from typing import Any

import pytest
from sqlalchemy import func, select, update

from contract.checks import ApiSpec, CheckType, Lane
from contract.job import Job, RunSource
from contract.wire import decode
from service.accounts.model import Role
from service.audit import actions as audit
from service.checks.fields import MOST_ITEMS
from service.checks.sealing import opened_spec
from service.db.tables.checks import (
    check_,
    check_group,
    check_group_tag,
    check_location,
    heartbeat,
    schedule,
)
from service.db.tables.supplies import variable
from service.jobs import actions as jobs
from service.jobs.claims import Table, deal
from service.vault.sealing import UnsealableError
from service.vault.texts import HIDDEN
from tests.builders.check_bodies import check_body, script_body
from tests.builders.groups import group_body
from tests.builders.world import a_claimant
from tests.servers.public_api import ApiUser, PublicApi

PATHS = ("/v1/check-groups", "/v2/check-groups")
SECRET = "s3cr3t-of-nobody-else"
TOKEN = {"key": "TOKEN", "value": SECRET, "locked": False, "secret": True}
NO_HEADER_NAME = (
    '"apiCheckDefaults.headers[0]" is called a…; a name holds neither white space nor a colon.'
)
NO_SUCH_PLACE = (
    '"privateLocations[0]" is moon, and there is no private location of this slug; there are'
    " default."
)
TWO_ADDRESSES = (
    '"environmentVariables[0].key" is GROUP_BASE_URL, which apiCheckDefaults.url sets;'
    " give one of them."
)
ALERTS = {
    "escalationType": "RUN_BASED",
    "runBasedEscalation": {"failedRunThreshold": 1},
    "timeBasedEscalation": {"minutesFailingThreshold": 5},
    "reminders": {"amount": 0, "interval": 5},
    "parallelRunFailureThreshold": {"enabled": False, "percentage": 10},
}


async def a_group(user: ApiUser, path: str = PATHS[0], **fields: Any) -> dict[str, Any]:
    answer = await user.post(path, group_body(**fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def a_check(user: ApiUser, group: dict[str, Any], kind: str = "url", **fields: Any) -> Any:
    make = script_body if kind in ("browser", "multistep") else check_body
    body = make(kind, groupId=group["id"], **fields)
    answer = await user.post(f"/v1/checks/{kind}", body)
    assert answer.status == 201, answer.body
    return answer.body


async def changed(user: ApiUser, group: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await user.put(f"/v1/check-groups/{group['id']}", {**group, **fields})
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def row_of(api: PublicApi, check: dict[str, Any]) -> Any:
    query = select(check_).where(check_.c.id == check["id"])
    return await api.database.read(lambda c: c.execute(query).one())


async def is_scheduled(api: PublicApi, check: dict[str, Any]) -> bool:
    query = select(schedule).where(schedule.c.check_id == check["id"])
    return await api.database.read(lambda c: c.execute(query).first()) is not None


async def job_of(api: PublicApi, check: dict[str, Any]) -> Job:
    """A run of the check, as an agent at its location is handed it."""
    location_id = api.alice.secrets.location_id
    claimant = a_claimant(
        slots=dict.fromkeys(Lane, 10), check_types=frozenset({CheckType(check["checkType"])})
    )

    def run(connection: Any) -> bytes:
        now_ms = api.backend.clock.now_ms(connection)
        wanted = jobs.WantedRuns(
            check_id=check["id"],
            location_ids=[location_id],
            source=RunSource.SCHEDULE_NOW,
            session_id=None,
        )
        jobs.enqueue(connection, wanted, now_ms=now_ms)
        table = Table(location_id, api.backend.vault)
        (job,) = deal(connection, table, [claimant], now_ms=now_ms).jobs[0]
        return job

    return decode(await api.database.write(run), Job)


async def test_a_group_of_the_first_form_has_its_defaults(alice: ApiUser) -> None:
    group = await a_group(alice)
    assert {**group, "id": 1, "created_at": ""} == {
        "id": 1,
        "name": "Shop",
        "activated": True,
        "muted": False,
        "tags": [],
        "locations": [],
        "privateLocations": [],
        "concurrency": 3,
        "apiCheckDefaults": {
            "url": "",
            "headers": [],
            "queryParameters": [],
            "assertions": [],
            "basicAuth": None,
        },
        "browserCheckDefaults": "",
        "environmentVariables": [],
        "doubleCheck": True,
        "useGlobalAlertSettings": True,
        "alertSettings": ALERTS,
        "alertChannelSubscriptions": [],
        "setupSnippetId": None,
        "tearDownSnippetId": None,
        "localSetupScript": None,
        "localTearDownScript": None,
        "runtimeId": None,
        "retryStrategy": None,
        "runParallel": False,
        "created_at": "",
        "updated_at": None,
    }


async def test_a_group_of_the_second_form_leaves_to_its_checks_what_is_not_said(
    alice: ApiUser,
) -> None:
    first, second = await a_group(alice), await a_group(alice, PATHS[1])
    assert {name: second[name] for name in second if second[name] != first[name]} == {
        "id": second["id"],
        "created_at": second["created_at"],
        "doubleCheck": False,
        "useGlobalAlertSettings": None,
        "alertSettings": None,
        "runParallel": None,
    }


@pytest.mark.parametrize("path", PATHS)
async def test_what_was_sent_is_read_listed_and_can_be_sent_back(alice: ApiUser, path: str) -> None:
    group = await a_group(
        alice,
        path,
        activated=False,
        muted=True,
        tags=["shop", "eu"],
        privateLocations=["default"],
        concurrency=7,
        apiCheckDefaults={
            "url": "https://shop.test",
            "headers": [{"key": "a", "value": "b", "locked": True}],
            "queryParameters": [{"key": "c", "value": "d"}],
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
            "basicAuth": {"username": "u", "password": "p"},
        },
        browserCheckDefaults="kept",
        runtimeId="2026.04",
        environmentVariables=[{"key": "A", "value": "1"}, TOKEN],
        alertSettings={**ALERTS, "reminders": {"amount": 2, "interval": 10}},
        useGlobalAlertSettings=False,
        alertChannelSubscriptions=[{"alertChannelId": 5, "activated": False}],
        localSetupScript="1",
        localTearDownScript="2",
        runParallel=True,
        retryStrategy={"type": "LINEAR", "baseBackoffSeconds": 3, "sameRegion": False},
    )
    assert group["environmentVariables"][1] == {**TOKEN, "value": ""}
    assert group["alertChannelSubscriptions"] == [{"alertChannelId": 5, "activated": False}]
    assert group["retryStrategy"]["type"] == "LINEAR"
    one = f"/v1/check-groups/{group['id']}"
    assert (await alice.get(one)).body == group
    assert (await alice.get("/v1/check-groups")).body == [group]
    again = await alice.put(f"{path}/{group['id']}", group)
    assert again.status == 200, again.body
    assert {**again.body, "updated_at": None} == group


async def test_lists_are_pages_by_tag_and_part_of_the_name(alice: ApiUser) -> None:
    shop = await a_group(alice, name="The Shop", tags=["a", "b"])
    bank = await a_group(alice, name="The Bank", tags=["b"])

    async def listed(query: str) -> list[int]:
        return [one["id"] for one in (await alice.get(f"/v1/check-groups?{query}")).body]

    assert await listed("") == [shop["id"], bank["id"]]
    assert await listed("tag=a") == [shop["id"]]
    assert await listed("tag=b&name=bank") == [bank["id"]]
    assert await listed("tag=c") == []
    assert await listed("limit=1&page=2") == [bank["id"]]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"name": ""}, "name", '"name" must not be empty.'),
        ({"concurrency": 0}, "concurrency", '"concurrency" is 0; use at least 1.'),
        ({"concurrency": 1.5}, "concurrency", '"concurrency" is 1.5; use a whole number.'),
        (
            {"retryStrategy": "NEVER"},
            "retryStrategy",
            "\"retryStrategy\" is NEVER; use one of 'FALLBACK'.",
        ),
        (
            {"retryStrategy": {"type": "FIXED", "maxRetries": 11}},
            "retryStrategy.maxRetries",
            '"retryStrategy.maxRetries" is 11; use at most 10.',
        ),
        (
            {"setupSnippetId": 77},
            "setupSnippetId",
            '"setupSnippetId" is 77, and there is no snippet with this id.',
        ),
        (
            {"setupSnippetId": 77, "localSetupScript": "1"},
            "setupSnippetId",
            '"setupSnippetId" is given beside localSetupScript; use one of them.',
        ),
        (
            {"privateLocations": ["moon"]},
            "privateLocations[0]",
            NO_SUCH_PLACE,
        ),
        (
            {"apiCheckDefaults": {"headers": [{"key": "a", "value": "b\r\nc"}]}},
            "apiCheckDefaults.headers[0]",
            '"apiCheckDefaults.headers[0]" must not hold a line break.',
        ),
        (
            {"apiCheckDefaults": {"headers": [{"key": "a b", "value": "c"}]}},
            "apiCheckDefaults.headers[0]",
            NO_HEADER_NAME,
        ),
        (
            {
                "apiCheckDefaults": {"url": "https://a"},
                "environmentVariables": [{"key": "GROUP_BASE_URL", "value": "https://b"}],
            },
            "environmentVariables[0].key",
            TWO_ADDRESSES,
        ),
        (
            {"environmentVariables": [{"key": f"K{n}", "value": "v"} for n in range(51)]},
            "environmentVariables",
            '"environmentVariables" has 51 items; use at most 50.',
        ),
    ],
)
async def test_a_wrong_group_is_refused_with_a_sentence(
    alice: ApiUser, path: str, fields: dict[str, Any], key: str, said: str
) -> None:
    answer = await alice.post(path, group_body(**fields))
    assert answer.status == 400
    assert answer.body["message"] == said
    assert answer.body["validation"] == {"source": "payload", "keys": [key]}
    assert (await alice.get("/v1/check-groups")).body == []


@pytest.mark.parametrize("path", PATHS)
async def test_both_sides_of_the_limits(alice: ApiUser, path: str) -> None:
    fifty = [{"key": f"K{number}", "value": "v"} for number in range(50)]
    await a_group(alice, path, concurrency=1, environmentVariables=fifty)
    for retries in (1, 10):
        await a_group(alice, path, retryStrategy={"type": "FIXED", "maxRetries": retries})
    refused = await alice.post(path, group_body(retryStrategy={"type": "FIXED", "maxRetries": 0}))
    assert refused.status == 400


async def test_null_and_empty_are_taken_as_go_clients_send_them(alice: ApiUser) -> None:
    group = await a_group(
        alice,
        id=0,
        tags=None,
        locations=None,
        privateLocations=None,
        apiCheckDefaults=None,
        browserCheckDefaults=None,
        environmentVariables=None,
        alertChannelSubscriptions=None,
        setupSnippetId=0,
        localSetupScript="",
        runtimeId="",
        created_at="0001-01-01T00:00:00Z",
    )
    assert group["tags"] == group["environmentVariables"] == []
    assert group["apiCheckDefaults"]["headers"] == []
    assert (group["setupSnippetId"], group["localSetupScript"], group["runtimeId"]) == (
        None,
        None,
        None,
    )


async def test_what_is_locked_is_hidden_from_keys_that_only_read(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(
        alice,
        apiCheckDefaults={
            "url": "http://shop:s3same@shop.test",
            "headers": [{"key": "a", "value": "b", "locked": True}],
            "basicAuth": {"username": "shop", "password": "s3same"},
        },
        environmentVariables=[{"key": "L", "value": "v", "locked": True}],
    )
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    seen = (await reader.get(f"/v1/check-groups/{group['id']}")).body
    assert seen["apiCheckDefaults"]["headers"][0]["value"] == HIDDEN
    assert "s3same" not in str(seen)
    assert seen["environmentVariables"][0]["value"] == HIDDEN
    assert group["environmentVariables"][0]["value"] == "v"


async def test_a_check_is_made_in_a_group_and_runs_where_its_group_says(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, privateLocations=["default"])
    check = await a_check(alice, group, privateLocations=[])
    assert (check["groupId"], check["privateLocations"]) == (group["id"], [])
    places = select(check_location.c.location_id)
    assert await api.database.read(lambda c: list(c.execute(places).scalars())) == [
        alice.secrets.location_id
    ]
    nowhere = await a_group(alice)
    body = check_body("url", groupId=nowhere["id"], privateLocations=[])
    assert (await alice.post("/v1/checks/url", body)).status == 400


async def test_checks_move_with_their_group_and_those_with_a_place_of_their_own_stay(
    api: PublicApi, alice: ApiUser
) -> None:
    cellar = (
        await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    ).body
    group = await a_group(alice, privateLocations=["default"])
    moves = await a_check(alice, group, privateLocations=[])
    stays = await a_check(alice, group, privateLocations=["default"])
    group = await changed(alice, group, privateLocations=["cellar"], muted=True)
    places = select(check_location.c.check_id, check_location.c.location_id)
    found = await api.database.read(lambda c: dict(map(tuple, c.execute(places))))
    assert found == {moves["id"]: cellar["id"], stays["id"]: alice.secrets.location_id}
    assert [(await row_of(api, one)).muted for one in (moves, stays)] == [True, True]


@pytest.mark.parametrize("group_id", [77, 1 << 62, 1 << 80, -5])
async def test_a_check_in_a_group_that_is_not_there_is_refused(
    alice: ApiUser, group_id: int
) -> None:
    answer = await alice.post("/v1/checks/url", check_body("url", groupId=group_id))
    assert answer.status == 400
    assert answer.body["message"] == (
        f'"groupId" is {group_id}, and there is no check group with this id.'
    )


async def test_nobody_puts_checks_into_a_strangers_group(alice: ApiUser, charlie: ApiUser) -> None:
    group = await a_group(alice)
    body = check_body("url", groupId=group["id"])
    assert (await charlie.post("/v1/checks/url", body)).status == 400


async def test_the_checks_of_a_group_are_listed_in_its_order_with_its_settings(
    alice: ApiUser,
) -> None:
    group = await a_group(alice, tags=["shop"], muted=True, retryStrategy={"type": "FIXED"})
    none = await a_check(alice, group, name="no order")
    last = await a_check(alice, group, name="last", groupOrder=10)
    first = await a_check(alice, group, name="first", groupOrder=2)
    path = f"/v1/check-groups/{group['id']}/checks"
    listed = (await alice.get(path)).body
    assert [one["id"] for one in listed] == [first["id"], last["id"], none["id"]]
    assert (await alice.get(f"{path}?limit=1&page=2")).body == [listed[1]]
    assert listed[0]["tags"] == ["shop"]
    assert (listed[0]["muted"], listed[0]["retryStrategy"]["type"]) == (True, "FIXED")
    assert (await alice.get(f"{path}/{first['id']}")).body == listed[0]
    assert (await alice.get(f"/v1/checks/{first['id']}")).body == first
    applied = f"/v1/checks/{first['id']}?applyGroupSettings=true"
    assert (await alice.get(applied)).body == listed[0]
    every = (await alice.get("/v1/checks?applyGroupSettings=true")).body
    assert sorted(one["id"] for one in every) == sorted(one["id"] for one in listed)
    assert all(one["muted"] for one in every)


async def test_a_check_of_another_group_is_not_in_this_one(alice: ApiUser) -> None:
    group, other = await a_group(alice), await a_group(alice)
    check = await a_check(alice, other)
    answer = await alice.get(f"/v1/check-groups/{group['id']}/checks/{check['id']}")
    assert answer.status == 404
    assert (await alice.get("/v1/check-groups/999/checks")).status == 404


async def test_a_group_that_is_paused_pauses_its_checks_and_back(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_check(alice, group)
    paused = await a_check(alice, group, activated=False)
    group = await changed(alice, group, activated=False)
    assert not await is_scheduled(api, check)
    assert (await alice.get(f"/v1/checks/{check['id']}")).body["activated"] is True
    target = {"target": {"checkId": [check["id"]]}}
    assert (await alice.post("/v1/check-sessions/trigger", target)).status == 404
    await changed(alice, group, activated=True)
    assert await is_scheduled(api, check)
    assert not await is_scheduled(api, paused)


async def test_a_check_that_joins_or_leaves_a_group_goes_by_its_settings_or_no_more(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, activated=False, runParallel=True)
    check = (await alice.post("/v1/checks/url", check_body())).body
    path = f"/v1/checks/url/{check['id']}"
    assert (await alice.put(path, {**check, "groupId": group["id"]})).status == 200
    row = await row_of(api, check)
    assert (row.activated, row.run_parallel, row.group_id) == (False, True, group["id"])
    assert not await is_scheduled(api, check)
    assert (await alice.put(path, {**check, "groupId": None})).status == 200
    row = await row_of(api, check)
    assert (row.activated, row.run_parallel, row.group_id, row.applied) == (
        True,
        False,
        None,
        None,
    )
    assert await is_scheduled(api, check)


async def test_a_group_with_checks_is_not_deleted(api: PublicApi, alice: ApiUser) -> None:
    group = await a_group(alice, tags=["a"], environmentVariables=[TOKEN])
    check = await a_check(alice, group)
    path = f"/v1/check-groups/{group['id']}"
    answer = await alice.delete(path)
    assert answer.status == 409
    assert answer.body["message"] == (
        "The check group Shop holds 1 checks (Home); delete them, or take them out of it, first."
    )
    await alice.delete(f"/v1/checks/{check['id']}")
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    for table in (variable, check_group_tag):
        count = select(func.count()).select_from(table)
        assert await api.database.read(lambda c, q=count: c.execute(q).scalar_one()) == 0


async def test_what_a_group_names_is_not_deleted(alice: ApiUser) -> None:
    snippet = (await alice.post("/v1/snippets", {"name": "login", "script": "1"})).body
    cellar = {"name": "Cellar", "slugName": "cellar"}
    location = (await alice.post("/v1/private-locations", cellar)).body
    await a_group(alice, setupSnippetId=snippet["id"], privateLocations=["cellar"])
    answer = await alice.delete(f"/v1/snippets/{snippet['id']}")
    assert answer.status == 409
    assert "the setup or teardown of the check group Shop" in answer.body["message"]
    answer = await alice.delete(f"/v1/private-locations/{location['id']}")
    assert answer.status == 409
    assert "is one of the check group Shop" in answer.body["message"]


async def test_a_group_that_a_check_could_not_run_in_is_refused(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, privateLocations=["default"])
    check = await a_check(alice, group, privateLocations=[])
    path = f"/v1/check-groups/{group['id']}"
    answer = await alice.put(path, {**group, "privateLocations": []})
    assert answer.status == 400
    assert answer.body["message"] == (
        "The check Home could not run like this:"
        " You have to set at least one `location` or `privateLocation`"
    )
    assert (await alice.get(path)).body == group
    assert await is_scheduled(api, check)
    await a_check(alice, group, "browser")
    answer = await alice.put(path, {**group, "runtimeId": "2022.10"})
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == ["runtimeId"]


async def test_the_scripts_and_defaults_of_a_group_reach_the_runs_of_its_api_checks(
    api: PublicApi, alice: ApiUser
) -> None:
    snippet = (await alice.post("/v1/snippets", {"name": "sign", "script": "1"})).body
    group = await a_group(
        alice,
        setupSnippetId=snippet["id"],
        localTearDownScript="require('./snippets/sign.js')",
        apiCheckDefaults={
            "url": "https://shop.test",
            "headers": [{"key": "x-team", "value": "blue"}],
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
        },
        environmentVariables=[{"key": "TENANT", "value": "of the group"}, TOKEN],
    )
    request = {"url": "{{GROUP_BASE_URL}}/orders/{{TENANT}}"}
    check = await a_check(alice, group, "api", request=request, localSetupScript="own")
    spec: ApiSpec = decode((await row_of(api, check)).spec, ApiSpec)
    assert (spec.group_setup_script, spec.setup_script) == ("1", "own")
    assert spec.group_teardown_script == "require('./snippets/sign.js')"
    assert [file.path for file in spec.snippets] == ["snippets/sign.js"]
    assert [header.key for header in spec.request.headers] == ["x-team"]
    assert len(spec.assertions) == 1
    carried = {one.key: one.value for one in (await job_of(api, check)).variables}
    assert carried == {
        "GROUP_BASE_URL": "https://shop.test",
        "TENANT": "of the group",
        "TOKEN": SECRET,
    }
    await alice.put(f"/v1/snippets/{snippet['id']}", {"name": "sign", "script": "2"})
    spec = decode((await row_of(api, check)).spec, ApiSpec)
    assert (spec.group_setup_script, spec.snippets[0].content) == ("2", "2")


@pytest.mark.parametrize(
    ("url", "is_hidden"),
    [("https://shop.test/a@b", False), (f"https://shop:{SECRET}@shop.test", True)],
)
async def test_an_address_with_a_password_is_hidden_from_what_scripts_tell(
    api: PublicApi, alice: ApiUser, url: str, *, is_hidden: bool
) -> None:
    group = await a_group(alice, apiCheckDefaults={"url": url})
    check = await a_check(alice, group, "browser", **script_body())
    (one,) = (await job_of(api, check)).variables
    assert (one.key, one.value, one.locked) == ("GROUP_BASE_URL", url, is_hidden)
    assert (await alice.get(f"{PATHS[0]}/{group['id']}")).body["environmentVariables"] == []


async def test_a_request_is_given_what_it_names_of_check_group_and_account(
    api: PublicApi, alice: ApiUser
) -> None:
    for key in ("A", "B", "C"):
        await alice.post("/v1/variables", {"key": key, "value": "account"})
    group = await a_group(
        alice,
        environmentVariables=[{"key": key, "value": "group"} for key in ("B", "C", "UNNAMED")],
    )
    request = {"url": "https://shop.test/{{A}}/{{B}}/{{C}}"}
    own = [{"key": "C", "value": "check"}]
    check = await a_check(alice, group, "api", request=request, environmentVariables=own)
    carried = {one.key: one.value for one in (await job_of(api, check)).variables}
    assert carried == {"A": "account", "B": "group", "C": "check"}


async def test_the_scripts_of_a_group_make_a_plain_api_check_one_of_the_other_lane_and_back(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_check(alice, group, "api")
    assert (await row_of(api, check)).lane == Lane.UPTIME
    group = await changed(alice, group, localSetupScript="1")
    assert (await row_of(api, check)).lane == Lane.MAIN
    await changed(alice, group, localSetupScript=None)
    assert (await row_of(api, check)).lane == Lane.UPTIME


async def test_a_heartbeat_keeps_its_token_and_starts_over_when_its_group_is_activated(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, activated=False)
    check = await a_check(alice, group, "heartbeat")
    since = update(heartbeat).values(last_ping_ms=5, timer_started_ms=5)
    await api.database.write(lambda c: c.execute(since))
    group = await changed(alice, group, name="Other")
    last = select(heartbeat.c.last_ping_ms)
    assert await api.database.read(lambda c: c.execute(last).scalar_one()) == 5
    await changed(alice, group, activated=True)
    assert await api.database.read(lambda c: c.execute(last).scalar_one()) is None
    seen = (await alice.get(f"/v1/checks/{check['id']}")).body
    assert seen["heartbeat"]["pingToken"] == check["heartbeat"]["pingToken"]


async def test_the_audit_log_names_what_changed_and_no_secret(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, environmentVariables=[TOKEN])
    await changed(alice, group, muted=True, environmentVariables=[{**TOKEN, "value": "other"}])
    log = await api.database.read(lambda c: audit.newest(c, limit=10))
    newest = log[0]
    assert (newest.operation, newest.resource_id) == ("replaceCheckGroup", str(group["id"]))
    assert newest.fields == ("environmentVariables", "muted")
    assert SECRET not in repr(log)


PASSWORD = {"username": "shop", "password": SECRET}


async def test_another_password_of_a_group_is_noted_and_reaches_its_checks_sealed(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    await a_check(alice, group, "api")
    path = f"{PATHS[0]}/{group['id']}"
    specs = [(await api.database.read(lambda c: c.execute(select(check_.c.spec)).scalar_one()))]
    for password in (SECRET, "another"):
        given = {**group["apiCheckDefaults"], "basicAuth": {**PASSWORD, "password": password}}
        assert (await alice.put(path, {**group, "apiCheckDefaults": given})).status == 200
        query = select(check_.c.spec)
        specs.append(await api.database.read(lambda c, q=query: c.execute(q).scalar_one()))
    log = [one.fields for one in await api.database.read(lambda c: audit.newest(c, limit=2))]
    assert log == [("apiCheckDefaults",), ()]
    assert specs[0] == specs[1] != specs[2], "the same password leaves the checks as they are"
    assert not any(b"another" in spec or SECRET.encode() in spec for spec in specs)


async def test_a_group_whose_password_cannot_be_read_any_more_can_be_set_up_anew(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    path = f"{PATHS[0]}/{group['id']}"
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    sentence = f"The stored secrets of the check group {group['id']} cannot be read: "
    refused = [
        await alice.get(path),
        await alice.post("/v1/checks/api", check_body("api", groupId=group["id"])),
    ]
    assert [one.status for one in refused] == [500, 500]
    assert all(one.body["message"].startswith(sentence) for one in refused)
    assert (await alice.put(path, group)).status == 200
    [entry] = await api.database.read(lambda c: audit.newest(c, limit=1))
    assert entry.fields == ("apiCheckDefaults",)
    assert (await alice.get(path)).body["apiCheckDefaults"] == group["apiCheckDefaults"]


async def a_damaged_check(api: PublicApi, alice: ApiUser, group: dict[str, Any]) -> dict[str, Any]:
    """A check of the group with a password that does not open, though what its runs need does."""
    request = {**check_body("api")["request"], "basicAuth": PASSWORD}
    check = await a_check(alice, group, "api", request=request)
    await api.database.write(lambda c: c.execute(update(check_).values(secrets=b"\1 not sealed")))
    return check


async def stored_spec(api: PublicApi, check: dict[str, Any]) -> bytes:
    """What runs of the check need.

    Raises:
        UnsealableError: it does not open, and the runs end as our fault.
    """
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    named = {"account_id": row.account_id, "check_id": check["id"]}
    return opened_spec(row.spec, api.backend.vault, **named)


async def test_a_check_that_cannot_be_read_keeps_its_group_from_no_change(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_damaged_check(api, alice, group)
    answer = await alice.put(
        f"{PATHS[0]}/{group['id']}", {**group, "muted": True, "activated": False}
    )
    assert (answer.status, answer.body["muted"]) == (200, True)
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    assert (row.activated, row.muted, row.secrets) == (False, True, b"\1 not sealed")
    with pytest.raises(UnsealableError):
        await stored_spec(api, check)
    assert (await alice.get(f"/v1/checks/{check['id']}")).status == 500


@pytest.mark.parametrize("first", ["check", "group"])
async def test_a_group_and_a_check_of_it_that_cannot_be_read_are_mended_in_either_order(
    api: PublicApi, alice: ApiUser, first: str
) -> None:
    given = {"headers": [{"key": "x-group", "value": "new", "locked": True}]}
    group = await a_group(alice, apiCheckDefaults=given)
    check = await a_damaged_check(api, alice, group)
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    puts = [
        (f"/v1/checks/api/{check['id']}", check),
        (f"{PATHS[0]}/{group['id']}", {**group, "apiCheckDefaults": given}),
    ]
    for path, body in puts if first == "check" else reversed(puts):
        answer = await alice.put(path, body)
        assert answer.status == 200, answer.body
        is_last = path == (puts[1] if first == "check" else puts[0])[0]
        if not is_last:
            with pytest.raises(UnsealableError):
                await stored_spec(api, check)
    spec = await stored_spec(api, check)
    assert SECRET.encode() in spec
    assert b'"x-group","value":"new"' in spec
    runs = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    assert runs["request"]["basicAuth"] == PASSWORD
    assert runs["request"]["headers"] == given["headers"]


async def test_a_check_that_runs_is_not_changed_where_its_group_cannot_be_read(
    api: PublicApi, alice: ApiUser
) -> None:
    """Its runs would end as our fault from then on, without the group's part of what they need."""
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    check = await a_check(alice, group, "api")
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    path = f"/v1/checks/api/{check['id']}"
    refused = await alice.put(path, {**check, "muted": True})
    assert refused.status == 500
    assert f"The stored secrets of the check group {group['id']} cannot" in refused.body["message"]
    assert SECRET.encode() in await stored_spec(api, check)
    assert (await alice.put(path, {**check, "groupId": None})).status == 200


def so_many(kind: str) -> dict[str, Any]:
    """As many of all that a group adds to its checks as can be written."""
    numbers = range(MOST_ITEMS)
    pairs = [{"key": f"{kind}-{number}", "value": "x"} for number in numbers]
    is_good = {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}
    return {"headers": pairs, "queryParameters": pairs, "assertions": [is_good for _ in numbers]}


def lengths(body: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Of each list that a group adds to: name, length, and the length that the document allows."""
    schemas = document["components"]["schemas"]
    shown = schemas["ApiCheckShown"]["properties"]
    request = schemas[shown["request"]["$ref"].rsplit("/", 1)[-1]]["properties"]
    lists = {"tags": (body["tags"], shown["tags"])}
    for name in ("headers", "queryParameters", "assertions"):
        lists[name] = (body["request"][name], request[name])
    return [
        (name, len(items), schema["anyOf"][0]["maxItems"])
        for name, (items, schema) in lists.items()
    ]


async def test_a_check_with_all_that_its_group_adds_fits_the_document(alice: ApiUser) -> None:
    tags = [[f"{kind}-{number}" for number in range(MOST_ITEMS)] for kind in ("shop", "check")]
    group = await a_group(alice, tags=tags[0], apiCheckDefaults=so_many("group"))
    request = {"url": "http://shop.test", **so_many("check")}
    check = await a_check(alice, group, "api", tags=tags[1], request=request)
    applied = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    document = (await alice.get("/openapi.json")).body
    for name, length, most in lengths(applied, document):
        assert (name, length, most) == (name, 2 * MOST_ITEMS, 2 * MOST_ITEMS)
