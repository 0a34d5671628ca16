"""Alice owns it, Bob has a key to her account, Charlie is a stranger: every operation with an id.

The table comes from the OpenAPI document, so that an operation that nobody thought of here fails.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any, Final

import pytest

from service.checks.types.registry import DEFINITIONS
from service.heartbeats.actions import ReceivedPing, take_pings
from service.routers import document
from tests.builders import status_pages as statuses
from tests.builders.certificates import certificate_body
from tests.builders.code_bundles import bundle_bytes, sha256_of, suite_body
from tests.builders.examples import BODIES
from tests.builders.stored_results import failed, passed, store
from tests.servers.public_api import Answer, ApiUser, PublicApi

BUNDLE = bundle_bytes()
OPEN: Final = (
    "GET /v1/runtimes/{id}",
    "GET /checks/{checkId}/trigger/{token}",
    "GET /check-groups/{groupId}/trigger/{token}",
    "GET /status-pages/{url}.json",
)
"""These belong to nobody."""
OWN_SPACE: Final = ("PUT /v1/code-bundles/{sha256}", "DELETE /v1/projects/{logicalId}")
"""The id is the content's, and whoever sends it has one of their own."""
NOT_THERE: Final = (
    "GET /v1/check-results/{checkId}/{checkResultId}/assets/{name}",
    "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}",
    "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}/assets",
    "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}/assets/{name}",
    "GET /next/test-sessions/{testSessionId}/results/{testSessionResultId}/links",
    "GET /next/assets/log/{sequenceId}/{testSessionResultId}",
)
"""Alice herself has none of it here; `test_assets_api.py` and `test_ad_hoc.py` send one."""

Ids = Mapping[str, str]
Make = Callable[[PublicApi, str], Awaitable[Ids]]


def operations() -> list[str]:
    """Those that take an id, in an order in which what is used is deleted last."""
    found = [
        f"{verb.upper()} {path}"
        for path, verbs in document()["paths"].items()
        for verb in verbs
        if "{" in path
    ]
    order = ("GET", "PUT", "PATCH", "POST", "DELETE")
    return sorted(found, key=lambda name: (order.index(name.split()[0]), -name.count("/")))


LISTS: Final = (
    "/next/accounts",
    "/v1/accounts",
    "/v1/alert-channels",
    "/v1/check-alerts",
    "/v1/check-groups",
    "/v1/test-sessions",
    "/v1/check-statuses",
    "/v1/checks",
    "/v1/client-certificates",
    "/v1/error-groups",
    "/v1/maintenance-windows",
    "/v1/private-locations",
    "/next/projects",
    "/next/projects/imports",
    "/v1/projects",
    "/v1/snippets",
    "/v1/status-pages",
    "/v1/status-pages/incidents",
    "/v1/status-pages/services",
    "/v1/variables",
)
GUARDED: Final = [name for name in operations() if name not in OPEN]


async def a_check(api: PublicApi, name: str) -> Ids:
    if "heartbeats" in name:
        return await a_heartbeat(api, name)
    kind = name.split("/")[3].replace("{id}", "url")
    return {"id": (await made(api, f"/v1/checks/{kind}"))["id"]}


async def a_measured_check(api: PublicApi, name: str) -> Ids:
    [one] = [one for one in DEFINITIONS if one.analytics and one.analytics.path in name]
    kind = one.kind.value.lower().replace("_", "")
    return {"id": (await made(api, f"/v1/checks/{kind}"))["id"]}


async def a_heartbeat(api: PublicApi, _name: str) -> Ids:
    check = await made(api, "/v1/checks/heartbeat")
    token = check["heartbeat"]["pingToken"]
    one = ReceivedPing(
        ping_id=None, token=token, age_s=0, method="GET", source="", user_agent="curl/8"
    )
    await api.database.write(lambda c: take_pings(c, [one], now_ms=api.backend.clock.now_ms(c)))
    listed = await api.alice.get(f"/v1/checks/heartbeats/{check['id']}/events")
    return {"checkId": check["id"], "id": listed.body[0]["events"][0]["id"]}


async def a_result(api: PublicApi, _name: str) -> Ids:
    check = await made(api, "/v1/checks/url")
    await store(api, check, passed())
    (listed,) = (await api.alice.get(f"/v1/check-results/{check['id']}")).body
    return {"checkId": check["id"], "checkResultId": listed["id"], "name": "trace.zip"}


async def a_session(api: PublicApi, _name: str) -> Ids:
    check = await made(api, "/v1/checks/url")
    target = {"target": {"checkId": [check["id"]]}}
    session = (await api.alice.post("/v1/check-sessions/trigger", target)).body["sessions"][0]
    return {"checkSessionId": session["checkSessionId"]}


async def a_test_session(api: PublicApi, _name: str) -> Ids:
    path = "/v1/test-sessions/run"
    started = (await api.alice.post(path, BODIES[f"POST {path}"])).body
    return {
        "testSessionId": started["testSessionId"],
        "schedulingId": started["schedulingId"],
        "sequenceId": next(iter(started["sequenceIds"].values())),
        "testSessionResultId": "none",
        "name": "none",
    }


async def a_group(api: PublicApi, name: str) -> Ids:
    group = await made(api, "/v1/check-groups", {"name": "Shop", "privateLocations": ["default"]})
    if not name.endswith("}/checks/{checkId}"):
        return {"id": str(group["id"])}
    check = await made(
        api, "/v1/checks/url", {**BODIES["POST /v1/checks/url"], "groupId": group["id"]}
    )
    return {"groupId": str(group["id"]), "checkId": check["id"]}


async def an_import_plan(api: PublicApi, name: str = "") -> Ids:
    project = await made(api, "/next/projects")
    if name.startswith("POST") and name.endswith("imports"):
        return {"logicalId": project["logicalId"]}
    plan = await api.alice.post(f"/next/projects/{project['logicalId']}/imports", {})
    assert plan.status == 201, plan.body
    if name.endswith("commit"):
        await api.alice.post(f"/next/projects/imports/{plan.body['id']}/apply")
    return {"logicalId": project["logicalId"], "importPlanId": plan.body["id"]}


async def a_project(api: PublicApi, name: str) -> Ids:
    if "imports" in name:
        return await an_import_plan(api, name)
    begun = (await api.alice.post("/v1/projects/deploy", BODIES["POST /v1/projects/deploy"])).body
    return {"logicalId": begun["logicalId"], "deploymentId": begun["id"]}


async def a_snippet(api: PublicApi, name: str) -> Ids:
    body = {"name": f"of-{name.split(maxsplit=1)[0].lower()}", "script": "1"}
    return {"id": str((await made(api, "/v1/snippets", body))["id"])}


async def a_status_page(api: PublicApi, name: str) -> Ids:
    service = await statuses.a_service(api.alice)
    if "/services" in name:
        return {"serviceId": service}
    if "/incidents" in name:
        incident = await statuses.an_incident(api.alice, service)
        update = await statuses.say(api.alice, incident, "RESOLVED")
        return {
            "incidentId": incident["id"],
            "incidentUpdateId": update["id"],
            "serviceId": service,
        }
    page = await statuses.a_page(api.alice, service, isPrivate=True)
    path = f"/v1/status-pages/{page['id']}/subscriptions"
    await made(api, f"{path}/bulk", {"subscriptions": [{"type": "EMAIL", "config": "a@b.test"}]})
    (subscription,) = (await api.alice.get(path)).body
    return {"statusPageId": page["id"], "subscriptionId": subscription["id"]}


async def a_location(api: PublicApi, name: str) -> Ids:
    slug = f"place-{GUARDED.index(name)}"
    found = await made(api, "/v1/private-locations", {"name": "Place", "slugName": slug})
    return {"id": found["id"], "keyId": found["keys"][0]["id"]}


async def a_bundle(api: PublicApi, _name: str) -> Ids:
    await api.alice.put(f"/v1/code-bundles/{sha256_of(BUNDLE)}", data=BUNDLE)
    return {"sha256": sha256_of(BUNDLE)}


async def a_variable(api: PublicApi, name: str) -> Ids:
    key = f"K{GUARDED.index(name)}"
    return {"key": (await made(api, "/v1/variables", {"key": key, "value": "hers"}))["key"]}


async def a_certificate(api: PublicApi, _name: str) -> Ids:
    return {"id": (await made(api, "/v1/client-certificates", certificate_body()))["id"]}


async def a_maintenance_window(api: PublicApi, _name: str) -> Ids:
    return {"id": str((await made(api, "/v1/maintenance-windows"))["id"])}


async def an_account(api: PublicApi, _name: str) -> Ids:
    return {"accountId": api.alice.secrets.account_id}


async def a_group_with_results(api: PublicApi) -> Ids:
    group = await made(api, "/v1/check-groups")
    return {"groupId": str(group["id"])}


async def a_badge(api: PublicApi, name: str) -> Ids:
    return await (a_group_with_results(api) if "groupId" in name else a_result(api, name))


async def a_trigger(api: PublicApi, name: str) -> Ids:
    if "groupId" in name:
        group = await a_group_with_results(api)
        made_for = await api.alice.post(f"/v1/triggers/check-groups/{group['groupId']}")
        assert made_for.status == 201
        return group
    check = await made(api, "/v1/checks/url")
    assert (await api.alice.post(f"/v1/triggers/checks/{check['id']}")).status == 201
    return {"checkId": check["id"]}


async def an_error_group(api: PublicApi, _name: str) -> Ids:
    check = await made(api, "/v1/checks/url")
    await store(api, check, failed())
    (group,) = (await api.alice.get(f"/v1/error-groups/checks/{check['id']}")).body
    return {"id": group["id"], "checkId": check["id"]}


async def an_alert_channel(api: PublicApi, _name: str) -> Ids:
    check = await made(api, "/v1/checks/url")
    return {"id": str((await made(api, "/v1/alert-channels"))["id"]), "checkId": check["id"]}


MAKERS: Final[Mapping[str, Make]] = {
    "accounts": an_account,
    "alert-channels": an_alert_channel,
    "analytics": a_measured_check,
    "assets": a_test_session,
    "badges": a_badge,
    "checks": a_check,
    "check-alerts": a_result,
    "check-groups": a_group,
    "check-results": a_result,
    "check-sessions": a_session,
    "check-statuses": a_result,
    "client-certificates": a_certificate,
    "code-bundles": a_bundle,
    "error-groups": an_error_group,
    "maintenance-windows": a_maintenance_window,
    "private-locations": a_location,
    "projects": a_project,
    "snippets": a_snippet,
    "status-pages": a_status_page,
    "test-sessions": a_test_session,
    "triggers": a_trigger,
    "variables": a_variable,
}
"""How Alice comes to have one, by the path's first part."""


async def made(api: PublicApi, path: str, body: Any = None) -> Any:
    body = deepcopy(body or BODIES[f"POST {path}"])
    if path.endswith("playwright"):
        await a_bundle(api, path)
        body = suite_body(sha256_of(BUNDLE))
    if path.endswith("agentic"):
        # There already where it is not the first one.
        await api.alice.post("/v1/private-locations", {"name": "East", "slugName": "us-east-1"})
    answer = await api.alice.post(path, body)
    assert answer.status == 201, answer.body
    return answer.body


async def ask(user: ApiUser, name: str, ids: Ids) -> Answer:
    method, template = name.split()
    path = template.format(**ids)
    if "sha256" in template and method == "PUT":
        return await user.put(path, data=BUNDLE)
    body = suite_body(sha256_of(BUNDLE)) if "playwright" in path else BODIES.get(name)
    if method == "PUT" and "services" in (body or {}):
        body = {**body, "services": [{"id": ids["serviceId"]}]}
    if path.endswith("/subscriptions") and method == "PUT":
        body = {"checkId": ids["checkId"], "activated": True}
    if name == "PUT /v1/alert-channels/{id}/subscriptions/bulk":
        body = {"subscriptions": [{"checkId": ids["checkId"], "activated": True}]}
    query = {"maxWaitSeconds": "1"} if path.endswith("completion") else {}
    if path.startswith("/v1/analytics"):
        query = {"metrics": "availability"}
    elif path.endswith("/metrics"):
        now_s = int(time.time())
        query = {"from": str(now_s - 60), "to": str(now_s)}
    return await user.ask(method, path, deepcopy(body) if method != "GET" else None, params=query)


def entries_of(answer: Answer) -> list[Any]:
    """The items of a list, by page or by cursor."""
    return list(answer.body["entries"] if isinstance(answer.body, dict) else answer.body)


def test_each_operation_with_an_id_is_in_the_table() -> None:
    unknown = [name for name in GUARDED if name.split("/")[2] not in MAKERS]
    assert unknown == [], "say in MAKERS how Alice comes to have one"


@pytest.mark.parametrize("name", [name for name in GUARDED if name not in OWN_SPACE])
async def test_what_is_alices_is_not_there_for_charlie(
    api: PublicApi, charlie: ApiUser, name: str
) -> None:
    ids = await MAKERS[name.split("/")[2]](api, name)
    answer = await ask(charlie, name, ids)
    assert (answer.status, answer.body["error"]) == (404, "Not Found"), answer.body
    as_alice = {"x-service-account": api.alice.secrets.account_id}
    pretending = ApiUser(charlie.url, charlie.http, charlie.secrets, as_alice)
    assert (await ask(pretending, name, ids)).status == 403
    nobody = {"authorization": "Bearer cu_nobody"}
    assert (await ask(ApiUser(api.url, api.http, charlie.secrets, nobody), name, ids)).status == 401
    bob = await api.colleague("Bob")
    of_bob = await ask(bob, name, ids)
    allowed = {200, 201, 204, 408} if name not in NOT_THERE else {404}
    assert of_bob.status in allowed, of_bob.body


async def test_ids_of_alices_in_charlies_bodies_mean_nothing(
    api: PublicApi, charlie: ApiUser
) -> None:
    check = await made(api, "/v1/checks/url")
    snippet = await made(api, "/v1/snippets")
    cellar = {"name": "Cellar", "slugName": "cellar"}
    await api.alice.post("/v1/private-locations", cellar)
    target = {"target": {"checkId": [check["id"]]}}
    assert (await charlie.post("/v1/check-sessions/trigger", target)).status == 404
    body = deepcopy(dict(BODIES["POST /v1/checks/api"]))
    with_hers = {**body, "setupSnippetId": snippet["id"]}
    assert (await charlie.post("/v1/checks/api", with_hers)).status == 400
    at_hers = {**body, "privateLocations": ["cellar"]}
    assert (await charlie.post("/v1/checks/api", at_hers)).status == 400


@pytest.mark.parametrize("path", LISTS)
async def test_a_list_holds_nothing_of_another_account(
    api: PublicApi, charlie: ApiUser, path: str
) -> None:
    await an_error_group(api, path)
    await made(api, "/v1/check-groups", {"name": "Shop"})
    await made(api, "/v1/snippets")
    await made(api, "/v1/variables")
    await made(api, "/v1/client-certificates", certificate_body())
    await made(api, "/v1/maintenance-windows")
    await made(api, "/v1/alert-channels")
    await an_import_plan(api)
    await a_status_page(api, "/incidents")
    await a_status_page(api, "")
    await a_test_session(api, "")
    hers, his = [
        {
            str(one.get("id") or one.get("key") or one.get("testSessionId") or one["checkId"])
            for one in entries_of(await user.get(path))
        }
        for user in (api.alice, charlie)
    ]
    assert hers
    assert hers & his == set()


async def test_the_lists_are_all_here(api: PublicApi) -> None:
    """A list that is added must be thought of too."""
    lists = {
        path
        for path, verbs in document()["paths"].items()
        if "get" in verbs and "{" not in path and "security" in verbs["get"]
    }
    assert lists == {
        *LISTS,
        "/next/users/me",
        "/v1/accounts/me",
        "/v1/accounts/me/entitlements",
        "/v1/analytics/metrics",
        "/v1/reporting",
        "/v1/prometheus/metrics",
        "/v1/alert-notifications",  # no request makes one: test_delivery.py does
        "/v1/location-alerts",  # no request makes one: test_alerts_api.py does
    }
