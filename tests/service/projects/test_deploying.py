"""`/v1/projects/deploy`: all of a project or nothing, and a diff that is true."""

import gzip
import json
from typing import Any

import pytest
from sqlalchemy import func, select, text

from service.audit import audit
from service.db.tables.checks import schedule
from service.db.tables.metadata import metadata
from tests.builders.projects import (
    DEPLOY,
    EVERY_TYPE,
    SHOP,
    await_end,
    body,
    by_id,
    changed,
    deploy,
    deployed,
    every_type,
    preview,
    ref,
    resource,
    url_check,
)
from tests.servers.public_api import ApiUser, PublicApi


async def ids(user: ApiUser) -> dict[str, Any]:
    """What the project has, by logical id."""
    found = (await user.get(SHOP)).body["resources"]
    return {one["logicalId"]: one["physicalId"] for one in found}


async def count_rows(api: PublicApi) -> dict[str, int]:
    """How many rows each table has, but for those that note requests and deployments."""
    noted = {"audit", "deployment", "api_key", "idempotency"}
    tables = [one for one in metadata.sorted_tables if one.name not in noted]
    return await api.database.read(
        lambda c: {
            one.name: c.execute(select(func.count()).select_from(one)).scalar_one()
            for one in tables
        }
    )


async def test_a_project_of_every_type_is_deployed_at_once_and_a_second_time_changes_nothing(
    alice: ApiUser,
) -> None:
    first = await deployed(alice, every_type())
    second = await deployed(alice, every_type())
    seen = (await alice.get(SHOP)).body

    assert {one["type"] for one in first.values()} == set(EVERY_TYPE)
    assert {one["action"] for one in first.values()} == {"CREATE"}
    assert {one["action"] for one in second.values()} == {"UPDATE"}
    assert changed(second) == {}
    assert {name: one["physicalId"] for name, one in first.items()} == await ids(alice)
    assert (seen["name"], seen["repoUrl"]) == ("Shop", "https://git.test/shop")
    files = {one["logicalId"]: one["sourceFile"] for one in seen["resources"]}
    assert files["home"] == "src/home.ts"


async def test_references_lead_to_what_comes_earlier_and_later(alice: ApiUser) -> None:
    await deployed(alice, every_type())
    found = await ids(alice)
    home = (await alice.get(f"/v1/checks/{found['home']}")).body
    basket = (await alice.get(f"/v1/checks/{found['basket']}")).body
    group = (await alice.get(f"/v1/check-groups/{found['web']}")).body
    page = (await alice.get(f"/v1/status-pages/{found['status']}")).body

    assert home["privateLocations"] == ["cellar"], "of a location that comes after the check"
    assert home["triggerIncident"]["serviceId"] == found["payments"]
    assert home["alertChannelSubscriptions"] == [
        {"alertChannelId": found["ops"], "activated": True}
    ]
    assert (basket["groupId"], basket["dependencies"]) == (
        found["web"],
        [{"path": "src/page.ts", "content": "export const page = 1"}],
    )
    assert (group["privateLocations"], group["runParallel"]) == (["cellar"], None)
    assert [one["id"] for one in page["cards"][0]["services"]] == [found["payments"]]


async def test_components_are_the_cards_of_their_page_and_rules_the_incidents_of_checks(
    alice: ApiUser,
) -> None:
    await deployed(alice, every_type())
    found = await ids(alice)
    basket = (await alice.get(f"/v1/checks/{found['basket']}")).body
    page = (await alice.get(f"/v1/status-pages/{found['colors']}")).body
    (card,) = page["cards"]

    assert (card["name"], [one["id"] for one in card["services"]]) == ("Front", [found["site"]])
    assert basket["triggerIncident"] == {
        "serviceId": found["site"],
        "severity": "CRITICAL",
        "name": "The site fails",
        "description": "We look into it.",
        "notifySubscribers": True,
    }


async def test_what_is_not_in_the_body_is_deleted_and_what_changes_is_told_by_field(
    alice: ApiUser,
) -> None:
    await deployed(alice, every_type())
    found = await ids(alice)
    sent = every_type()
    sent["resources"] = [one for one in sent["resources"] if one["logicalId"] != "backup"]
    group = next(one for one in sent["resources"] if one["logicalId"] == "web")
    group["payload"]["concurrency"] = 5
    diff = await deployed(alice, sent)

    assert changed(diff) == {"backup": "DELETE", "web": "UPDATE"}
    assert diff["web"]["fields"] == ["concurrency"]
    assert (await alice.get(f"/v1/checks/{found['backup']}")).status == 404
    assert (await alice.get(f"/v1/check-groups/{found['web']}")).body["concurrency"] == 5


async def test_a_project_is_deleted_with_all_that_it_has_and_leaves_nothing(
    api: PublicApi, alice: ApiUser
) -> None:
    before = await count_rows(api)
    await deployed(alice, every_type())
    told = (await alice.delete(f"{SHOP}?dryRun=true")).body
    kept = await alice.get(SHOP)
    ended = await await_end(alice, (await alice.delete(SHOP)).body)
    again = await alice.delete(SHOP)

    assert kept.status == 200
    assert ended["status"] == "SUCCEEDED", ended["error"]
    assert by_id(ended["result"]).keys() == by_id(told).keys()
    assert {one["action"] for one in ended["result"]["diff"]} == {"DELETE"}
    assert await count_rows(api) == before
    assert (again.status, "status" in again.body) == (200, False)
    assert (await alice.get(SHOP)).status == 404


async def test_with_preserve_resources_they_stay_and_are_of_no_project(alice: ApiUser) -> None:
    await deployed(alice, body(url_check("home"), url_check("cart")))
    found = await ids(alice)
    diff = await deployed(alice, body(url_check("home")), "preserveResources=true")
    assert changed(diff) == {"cart": "DETACHED"}
    assert (await alice.get(f"/v1/checks/{found['cart']}")).status == 200
    assert set(await ids(alice)) == {"home"}
    await await_end(alice, (await alice.delete(f"{SHOP}?preserveResources=true")).body)
    assert (await alice.get(f"/v1/checks/{found['home']}")).status == 200


async def test_a_dry_run_tells_the_diff_and_leaves_nothing(api: PublicApi, alice: ApiUser) -> None:
    before = await count_rows(api)
    first = await preview(alice, every_type())
    assert first.status == 200, first.body
    assert await count_rows(api) == before
    assert {one["action"] for one in first.body["diff"]} == {"CREATE"}
    await deployed(alice, every_type())
    assert changed(by_id((await preview(alice, every_type())).body)) == {}
    removed = await preview(alice, body(url_check("home")), "preserveResources=true")
    assert by_id(removed.body)["backup"]["action"] == "DETACHED"


async def test_one_resource_that_does_not_fit_fails_all_and_says_which_and_from_where(
    api: PublicApi, alice: ApiUser
) -> None:
    before = await count_rows(api)
    sent = body(url_check("home"), url_check("cart", frequency=7))
    ended = await deploy(alice, sent)
    shown = await preview(alice, sent)

    assert (ended["status"], ended["result"]) == ("FAILED", None)
    assert ended["error"]["message"].startswith('check "cart" (src/cart.ts): "frequency" is 7')
    assert ended["error"]["keys"] == ["resources[1].payload.frequency"]
    assert (shown.status, shown.body["message"]) == (400, ended["error"]["message"])
    assert shown.body["validation"]["keys"] == ["resources[1].payload.frequency"]
    assert await count_rows(api) == before


async def test_what_fails_late_leaves_nothing_of_what_was_made_before(
    api: PublicApi, alice: ApiUser
) -> None:
    await deployed(alice, body(url_check("home")))
    before = await count_rows(api)
    page = {"name": "Status", "url": "taken", "cards": []}
    assert (await alice.post("/v1/status-pages", page)).status == 201
    held = {**before, "status_page": before["status_page"] + 1}
    location = resource("private-location", "east", {"name": "East", "slugName": "east"})
    taken = resource("status-page", "status", page, sourceFile="status.ts", sourceLine=12)
    ended = await deploy(alice, body(location, taken, url_check("home", muted=True)))

    assert ended["status"] == "FAILED"
    assert ended["error"]["message"] == (
        'status-page "status" (status.ts:12): A status page with the url taken already exists; use'
        " another."
    )
    assert await count_rows(api) == held
    assert (await alice.get(f"/v1/checks/{(await ids(alice))['home']}")).body["muted"] is False


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a type that is lacking": (
        url_check("home", checkType="GRPC"),
        '"checkType" is GRPC, and checks of this type are not supported',
    ),
    "a dashboard": (
        resource("dashboard", "home", {"header": "Shop"}, sourceFile="src/home.ts"),
        "dashboards are not supported",
    ),
    "a type that nobody knows": (
        resource("teapot", "home", {}, sourceFile="src/home.ts"),
        "resources of type teapot are not supported",
    ),
    "a reference to nothing": (
        url_check("home", groupId=ref("web")),
        '"groupId" refers to web, and no check-group of the project has this logicalId.',
    ),
    "a file that is not there": (
        url_check("home", checkType="BROWSER", script="1", dependencies=[3]),
        '"dependencies[0]" is 3, and there are 0 shared files.',
    ),
    "a location that is not there": (
        url_check("home", privateLocations=["moon"]),
        "moon",
    ),
    "something else's id": (
        resource("check", "home", None, member=False, physicalId="none", sourceFile="src/home.ts"),
        "there is no check none.",
    ),
    "a channel of an unknown kind": (
        resource("alert-channel", "home", {"type": "FAX", "config": {}}, sourceFile="src/home.ts"),
        '"type" must be one of EMAIL',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_deployed_is_named_with_its_file_and_why(
    alice: ApiUser, name: str
) -> None:
    sent, why = REFUSED[name]
    ended = await deploy(alice, body(sent))
    assert ended["status"] == "FAILED"
    message = ended["error"]["message"]
    assert message.startswith(f'{sent["type"]} "home" (src/home.ts): '), message
    assert why in message


async def test_two_of_one_type_need_two_names(alice: ApiUser) -> None:
    ended = await deploy(alice, body(url_check("home"), url_check("home")))
    assert "another check has this logicalId too" in ended["error"]["message"]
    group = resource("check-group", "home", {"name": "Home", "v": 2})
    assert changed(await deployed(alice, body(group, url_check("home", groupId=ref("home")))))


async def test_what_was_deleted_by_hand_is_made_again(alice: ApiUser) -> None:
    await deployed(alice, every_type())
    found = await ids(alice)
    for path in (f"checks/{found['home']}", f"alert-channels/{found['ops']}"):
        assert (await alice.delete(f"/v1/{path}")).status == 204
    diff = await deployed(alice, every_type())
    made = {"home": "CREATE", "ops": "CREATE", "ops-home": "CREATE", "ops-web": "CREATE"}
    assert changed(diff) == made
    assert changed(await deployed(alice, every_type())) == {}


async def test_what_was_changed_by_hand_is_as_the_code_says_again(alice: ApiUser) -> None:
    await deployed(alice, body(url_check("home")))
    home = (await ids(alice))["home"]
    await alice.put(f"/v1/checks/{home}", {"checkType": "URL", "muted": True})
    diff = await deployed(alice, body(url_check("home")))
    assert diff["home"]["fields"] == ["muted"]
    assert (await alice.get(f"/v1/checks/{home}")).body["muted"] is False


async def test_a_deployment_that_changes_nothing_writes_nothing(alice: ApiUser) -> None:
    await deployed(alice, body(url_check("home")))
    home = (await ids(alice))["home"]
    # It is said in another way, and means the same.
    await deployed(alice, body(url_check("home", activated=True)))
    assert (await alice.get(f"/v1/checks/{home}")).body["updated_at"] is None


async def test_what_is_there_is_referred_to_and_left_alone(alice: ApiUser) -> None:
    location = (await alice.get("/v1/private-locations")).body[0]
    channel = {"type": "EMAIL", "config": {"address": "ops@shop.test"}}
    channel_id = (await alice.post("/v1/alert-channels", channel)).body["id"]
    diff = await deployed(
        alice,
        body(
            resource("alert-channel", "ops", None, member=False, physicalId=channel_id),
            resource("private-location", "here", None, member=False, physicalId=location["id"]),
            url_check("home", privateLocations=None),
            resource(
                "private-location-check-assignment",
                "home-here",
                {"privateLocationId": ref("here"), "checkId": ref("home")},
            ),
            resource(
                "alert-channel-subscription",
                "ops-home",
                {"alertChannelId": ref("ops"), "checkId": ref("home"), "activated": True},
            ),
        ),
    )
    assert diff.keys() == {"home", "home-here", "ops-home"}
    await await_end(alice, (await alice.delete(SHOP)).body)
    assert (await alice.get(f"/v1/alert-channels/{channel_id}")).status == 200
    assert len((await alice.get("/v1/private-locations")).body) == 1


async def test_a_thing_that_exists_is_taken_over_by_one_project_alone(alice: ApiUser) -> None:
    payload = url_check("home")["payload"]
    check_id = (await alice.post("/v1/checks", payload)).body["id"]
    diff = await deployed(alice, body({**url_check("home"), "physicalId": check_id}))
    assert (diff["home"]["physicalId"], diff["home"]["action"]) == (check_id, "UPDATE")
    other = body({**url_check("home"), "physicalId": check_id})
    other["project"] = {"logicalId": "other", "name": "Other"}
    ended = await deploy(alice, other)
    assert f"{check_id} belongs to the project shop; leave it out" in ended["error"]["message"]


async def test_nothing_of_another_account_can_be_named(alice: ApiUser, charlie: ApiUser) -> None:
    await deployed(alice, body(url_check("home")))
    home = (await ids(alice))["home"]
    for member in (True, False):
        sent = {**url_check("home"), "physicalId": home, "member": member}
        ended = await deploy(charlie, body(sent))
        assert f"there is no check {home}." in ended["error"]["message"]


async def test_a_location_keeps_its_keys_and_begins_without_one(alice: ApiUser) -> None:
    location = resource("private-location", "cellar", {"name": "Cellar", "slugName": "cellar"})
    await deployed(alice, body(location))
    path = f"/v1/private-locations/{(await ids(alice))['cellar']}"
    assert (await alice.get(path)).body["keys"] == []
    assert (await alice.post(f"{path}/keys")).body["rawKey"].startswith("pl_")
    location["payload"]["name"] = "Vault"
    assert changed(await deployed(alice, body(location))) == {"cellar": "UPDATE"}
    seen = (await alice.get(path)).body
    assert (seen["name"], len(seen["keys"])) == ("Vault", 1)


async def test_a_check_keeps_its_type_under_one_name(alice: ApiUser) -> None:
    await deployed(alice, body(url_check("home")))
    ended = await deploy(
        alice, body(url_check("home", checkType="TCP", request={"hostname": "a.test", "port": 25}))
    )
    assert "give the new one another logicalId" in ended["error"]["message"]


async def test_secrets_are_compared_whole_and_stand_nowhere_in_clear(
    api: PublicApi, alice: ApiUser
) -> None:
    def sent(value: str) -> dict[str, Any]:
        variable = {"key": "TOKEN", "value": value, "locked": True}
        return body(
            url_check("home", checkType="BROWSER", script="1", environmentVariables=[variable])
        )

    await deployed(alice, sent("first-of-two-secrets"))
    assert changed(await deployed(alice, sent("first-of-two-secrets"))) == {}
    diff = await deployed(alice, sent("other-of-two-secrets"))
    assert diff["home"]["fields"] == ["environmentVariables"]
    stored = await api.database.read(
        lambda c: [
            str(c.execute(text(f"SELECT * FROM {table}")).all())
            for table in ("project_resource", "deployment", "audit")
        ]
    )
    assert "of-two-secrets" not in "".join(stored)


@pytest.mark.parametrize(("query", "is_due"), [("true", True), ("false", False)])
async def test_new_checks_run_at_once_or_when_it_is_their_turn(
    api: PublicApi, alice: ApiUser, query: str, *, is_due: bool
) -> None:
    await deployed(alice, body(url_check("home")), f"scheduleOnDeploy={query}")
    now_ms, next_ms = await api.database.read(
        lambda c: (
            api.backend.clock.now_ms(c),
            c.execute(select(schedule.c.next_run_ms)).scalar_one(),
        )
    )
    assert (next_ms <= now_ms) is is_due


async def test_the_audit_log_names_the_project_and_what_was_changed(
    api: PublicApi, alice: ApiUser
) -> None:
    await deployed(alice, body(url_check("home")))
    entries = await api.database.read(lambda c: audit.list_newest(c, limit=2))
    assert [(one.operation, one.resource_id, one.fields) for one in entries] == [
        ("deployProject", "shop", ("check/home",)),
        ("deployProject", "shop", ()),
    ]


async def test_older_command_lines_are_answered_at_the_end(alice: ApiUser) -> None:
    path = "/next-v2/projects/deploy"
    made = await alice.post(f"{path}?dryRun=false", body(url_check("home")))
    bad = await alice.post(f"{path}?dryRun=false", body(url_check("home", frequency=7)))
    assert (made.status, made.body["diff"][0]["action"]) == (200, "CREATE")
    assert (bad.status, "(src/home.ts)" in bad.body["message"]) == (400, True)


async def test_a_packed_body_may_be_larger_than_that_of_one_check(alice: ApiUser) -> None:
    sent = body(url_check("home"))
    sent["sharedFiles"] = [{"path": "a.ts", "content": "// long\n" * 150_000}]
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    data = gzip.compress(json.dumps(sent).encode())
    shown = await alice.post(f"{DEPLOY}?dryRun=true", data=data, headers=dict(packed))
    refused = await alice.post("/v1/checks", data=data, headers=dict(packed))
    assert (shown.status, refused.status) == (200, 413)


async def test_what_is_missing_is_kept_in_the_project_but_for_subscriptions_of_what_is_there(
    alice: ApiUser,
) -> None:
    channel = resource("alert-channel", "ops", {"type": "EMAIL", "config": {"address": "a@b.c"}})
    heard = [
        resource(
            "alert-channel-subscription",
            f"ops-{one}",
            {"alertChannelId": ref("ops"), "checkId": ref(one), "activated": True},
        )
        for one in ("home", "cart")
    ]
    await deployed(alice, body(url_check("home"), url_check("cart"), channel, *heard))
    diff = await deployed(alice, body(url_check("home")), "keepMissing=true")
    assert [one["action"] for one in diff.values() if one["action"] != "UPDATE"] == ["DELETE"]
    assert set(await ids(alice)) == {"home", "cart", "ops", "ops-cart"}
    checks = {one["name"]: one for one in (await alice.get("/v1/checks")).body}
    subscribed = {name: one["alertChannelSubscriptions"] for name, one in checks.items()}
    assert [subscribed["Home"], len(subscribed["Cart"])] == [[], 1]


@pytest.mark.parametrize("name", ["ops", "team"])
async def test_what_the_body_uses_without_owning_it_leaves_the_project_and_stays(
    alice: ApiUser, name: str
) -> None:
    config = {"type": "EMAIL", "config": {"address": "ops@shop.test"}}
    made = await deployed(alice, body(url_check("home"), resource("alert-channel", "ops", config)))
    channel_id, home = made["ops"]["physicalId"], made["home"]["physicalId"]
    diff = await deployed(
        alice,
        body(
            url_check("home"),
            resource("alert-channel", name, None, member=False, physicalId=channel_id),
            resource(
                "alert-channel-subscription",
                "ops-home",
                {"alertChannelId": ref(name), "checkId": ref("home"), "activated": True},
            ),
        ),
    )
    assert diff["ops"]["action"] == "DETACHED"
    heard = (await alice.get(f"/v1/checks/{home}")).body["alertChannelSubscriptions"]
    assert heard == [{"alertChannelId": channel_id, "activated": True}]
    assert "ops" not in await ids(alice)


async def test_one_thing_is_taken_over_under_one_name(alice: ApiUser) -> None:
    made = await alice.post("/v1/checks", url_check("home")["payload"])
    twice = [{**url_check(name), "physicalId": made.body["id"]} for name in ("home", "copy")]
    refused = await preview(alice, body(*twice))
    assert refused.status == 400
    assert f"another check has the physicalId {made.body['id']} too" in refused.body["message"]


@pytest.mark.parametrize("physical_id", ["9" * 30, "\u0663", "x"])
async def test_what_is_no_id_of_its_type_is_refused_by_name(
    alice: ApiUser, physical_id: str
) -> None:
    named = resource("alert-channel", "ops", None, member=False, physicalId=physical_id)
    refused = await preview(alice, body(named))
    assert (refused.status, "is no number" in refused.body["message"]) == (400, True)


async def test_a_refusal_names_no_project_of_another_account(
    api: PublicApi, alice: ApiUser
) -> None:
    part = (await deployed(alice, every_type()))["home-cellar"]["physicalId"]
    mallory = await api.another_user("mallory")
    sent = body(
        url_check("home"),
        resource("private-location", "den", {"name": "Den", "slugName": "den"}),
        resource(
            "private-location-check-assignment",
            "home-den",
            {"privateLocationId": ref("den"), "checkId": ref("home")},
            physicalId=part,
        ),
    )
    assert "shop" not in str((await preview(mallory, sent)).body.get("message", ""))
