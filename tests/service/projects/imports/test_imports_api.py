"""`/next/projects/…/imports`: what exists becomes code, and nothing is deleted by mistake."""

from typing import Any

from tests.builders.check_bodies import check_body
from tests.builders.projects import SHOP, body, deployed, url_check
from tests.servers.public_api import Answer, ApiUser

PLANS = "/next/projects/imports"
OF_SHOP = "/next/projects/shop/imports"


async def a_project(user: ApiUser) -> None:
    made = await user.post("/next/projects", {"logicalId": "shop", "name": "Shop"})
    assert made.status == 201, made.body


async def a_check(user: ApiUser, name: str, **fields: Any) -> str:
    made = await user.post(
        "/v1/checks/url?autoAssignAlerts=false", check_body("url", name=name, **fields)
    )
    assert made.status == 201, made.body
    return str(made.body["id"])


async def plan(user: ApiUser, *filters: dict[str, Any], query: str = "") -> Answer:
    return await user.post(OF_SHOP + query, {"filters": list(filters)})


def only(kind: str, physical_id: str | None = None) -> tuple[dict[str, Any], ...]:
    """Filters as the command line sends them for one thing, or all of a type."""
    wanted = {"type": kind, **({"physicalId": physical_id} if physical_id else {})}
    return {"type": "exclude"}, {"type": "include", "resource": wanted}


def resources(answer: Answer) -> dict[str, dict[str, Any]]:
    assert answer.status == 201, answer.body
    return {one["logicalId"]: one for one in answer.body["changes"]["resources"]}


async def project_ids(user: ApiUser) -> dict[str, Any]:
    found = (await user.get(SHOP)).body["resources"]
    return {one["logicalId"]: one["physicalId"] for one in found}


async def test_a_plan_names_what_no_project_has_and_says_what_its_code_says(
    alice: ApiUser,
) -> None:
    await a_project(alice)
    shop = await a_check(alice, "Der Shop!", tags=["a"])
    again = await a_check(alice, "Der Shop!")
    found = resources(await plan(alice, *only("check")))
    checks = {name: one for name, one in found.items() if one["type"] == "check"}
    assert {name: one["physicalId"] for name, one in checks.items()} == {
        "der-shop": shop,
        "der-shop-2": again,
    }
    payload = checks["der-shop"]["payload"]
    assert (payload["id"], payload["name"], payload["tags"]) == (shop, "Der Shop!", ["a"])
    assert payload["retryStrategy"]["type"] == "SINGLE_RETRY", "its double check"
    assert None not in payload.values()
    assigned = [name for name, one in found.items() if one["type"].startswith("private-location-")]
    assert [name.split("#")[:2] for name in assigned] == [
        ["private-location-check-assignment", "der-shop"],
        ["private-location-check-assignment", "der-shop-2"],
    ]


async def test_the_last_filter_that_matches_decides(alice: ApiUser) -> None:
    await a_project(alice)
    shop, blog = await a_check(alice, "Shop"), await a_check(alice, "Blog")
    everything = resources(await plan(alice, query="?preview=true"))
    assert {"shop", "blog", "default"} <= everything.keys()
    one = resources(await plan(alice, *only("check", shop), query="?preview=true"))
    assert {"shop", "blog"} & one.keys() == {"shop"}
    without = {"type": "exclude", "resource": {"type": "check", "physicalId": blog}}
    rest = resources(await plan(alice, {"type": "include"}, without, query="?preview=true"))
    assert {"shop", "blog", "default"} & rest.keys() == {"shop", "default"}
    assert (await alice.get(PLANS)).body == [], "a preview is not stored"


async def test_nothing_to_import_is_404(alice: ApiUser) -> None:
    await a_project(alice)
    answer = await plan(alice, *only("check"))
    assert (answer.status, answer.body["message"]) == (404, "No importable resources were found.")
    assert (await alice.post("/next/projects/nobody/imports", {})).status == 404


async def test_an_applied_plan_is_changed_by_deployments_and_deleted_by_none_until_committed(
    alice: ApiUser,
) -> None:
    await a_project(alice)
    shop = await a_check(alice, "Shop")
    plan_id = (await plan(alice, *only("check"))).body["id"]
    assert (await alice.post(f"{PLANS}/{plan_id}/commit")).status == 403
    assert (await alice.post(f"{PLANS}/{plan_id}/apply")).status == 200
    assert (await alice.post(f"{PLANS}/{plan_id}/apply")).status == 403
    assert (await project_ids(alice))["shop"] == shop
    assert (await plan(alice, *only("check"))).status == 404, "it is of a project now"
    await deployed(alice, body(url_check("other")))
    assert (await alice.get(f"/v1/checks/{shop}")).status == 200, "its code may not be there yet"
    diff = await deployed(alice, body(url_check("shop", name="The shop"), url_check("other")))
    assert (diff["shop"]["action"], diff["shop"]["physicalId"]) == ("UPDATE", shop)
    assert (await alice.get(f"/v1/checks/{shop}")).body["name"] == "The shop"
    assert (await alice.post(f"{PLANS}/{plan_id}/commit")).status == 200
    assert (await alice.delete(f"{PLANS}/{plan_id}")).status == 403
    await deployed(alice, body(url_check("other")))
    assert (await alice.get(f"/v1/checks/{shop}")).status == 404


async def test_a_cancelled_plan_leaves_everything_as_it_is_outside_of_the_project(
    alice: ApiUser,
) -> None:
    await a_project(alice)
    shop = await a_check(alice, "Shop")
    plan_id = (await plan(alice, *only("check"))).body["id"]
    await alice.post(f"{PLANS}/{plan_id}/apply")
    listed = (await alice.get(f"{OF_SHOP}?onlyUncommitted=true")).body
    assert [(one["id"], one["committedAt"]) for one in listed] == [(plan_id, None)]
    assert (await alice.get(f"{OF_SHOP}?onlyUnapplied=true")).body == []
    assert (await alice.delete(f"{PLANS}/{plan_id}")).status == 204
    assert await project_ids(alice) == {}
    assert (await alice.get(f"/v1/checks/{shop}")).status == 200
    assert (await alice.get(PLANS)).body == []


async def test_nobody_else_sees_applies_or_cancels_a_plan(alice: ApiUser, charlie: ApiUser) -> None:
    await a_project(alice)
    await a_check(alice, "Shop")
    plan_id = (await plan(alice, *only("check"))).body["id"]
    assert (await charlie.get(PLANS)).body == []
    assert (await charlie.get(OF_SHOP)).status == 404
    for path in (f"{PLANS}/{plan_id}/apply", f"{PLANS}/{plan_id}/commit"):
        assert (await charlie.post(path)).status == 404
    assert (await charlie.delete(f"{PLANS}/{plan_id}")).status == 404


async def test_what_has_no_code_is_left_out_and_snippets_come_along(alice: ApiUser) -> None:
    await a_project(alice)
    helper = {"name": "helper", "script": "console.log(1)"}
    snippet = (await alice.post("/v1/snippets", helper)).body["id"]
    group = {"name": "With a snippet", "setupSnippetId": snippet}
    assert (await alice.post("/v1/check-groups", group)).status == 201
    api = check_body("api", name="Scripted", setupSnippetId=snippet)
    assert (await alice.post("/v1/checks/api", api)).status == 201
    answer = await plan(
        alice, *only("check"), {"type": "include", "resource": {"type": "check-group"}}
    )
    assert {one["type"] for one in resources(answer).values()} & {"check", "check-group"} == {
        "check"
    }
    auxiliary = answer.body["changes"]["auxiliary"]
    assert [(one["type"], one["payload"]["name"]) for one in auxiliary] == [("snippet", "helper")]
