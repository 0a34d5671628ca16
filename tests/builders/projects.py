"""Bodies of deployments, as the established command line sends them."""

from typing import Any

from tests.servers.public_api import Answer, ApiUser

DEPLOY = "/v1/projects/deploy"
SHOP = "/v1/projects/shop"
EVERY_TYPE = (
    *("status-page-service", "status-page", "status-page-component"),
    *("status-page-automation-rule", "check-group", "check", "alert-channel"),
    *("alert-channel-subscription", "maintenance-window", "private-location"),
    *("private-location-check-assignment", "private-location-group-assignment"),
)


def ref(logical_id: str) -> dict[str, str]:
    """What stands for the id of another resource."""
    return {"ref": logical_id}


def resource(kind: str, logical_id: str, payload: Any = None, **fields: Any) -> dict[str, Any]:
    """A resource that is a member of its project."""
    return {"type": kind, "logicalId": logical_id, "member": True, "payload": payload, **fields}


def url_check(logical_id: str, **fields: Any) -> dict[str, Any]:
    """A check of an address, which needs a location."""
    payload = {
        "checkType": "URL",
        "name": logical_id.capitalize(),
        "request": {"url": f"http://127.0.0.1/{logical_id}"},
        "locations": [],
        "groupId": None,
        "tags": [],
        "privateLocations": ["default"],
    }
    return resource("check", logical_id, {**payload, **fields}, sourceFile=f"src/{logical_id}.ts")


def body(*resources: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A deployment of the project `shop`."""
    project = {"logicalId": "shop", "name": "Shop", "repoUrl": "https://git.test/shop"}
    return {
        "project": project,
        "sharedFiles": [],
        "resources": list(resources),
        "repoInfo": None,
        **fields,
    }


def every_type() -> dict[str, Any]:
    """A project with a resource of each type, in the order in which the command line sends them."""
    colors = resource("status-page", "colors", {"name": "Parts", "url": "parts", "version": 3})
    browser = {
        "checkType": "BROWSER",
        "name": "Basket",
        "script": "await page.goto('http://127.0.0.1/')",
        "scriptPath": "src/basket.spec.ts",
        "dependencies": [1],
        "tags": ["web"],
        "locations": [],
        "groupId": ref("web"),
    }
    heartbeat = {
        "checkType": "HEARTBEAT",
        "name": "Backup",
        "heartbeat": {"period": 1, "periodUnit": "days", "grace": 30, "graceUnit": "minutes"},
    }
    resources = [
        resource("status-page-service", "payments", {"name": "Payments"}),
        resource(
            "status-page",
            "status",
            {
                "name": "Status",
                "url": "shop-status",
                "cards": [{"name": "Buying", "services": [ref("payments")]}],
            },
        ),
        colors,
        resource(
            "status-page-component",
            "front",
            {"statusPageId": ref("colors"), "type": "GROUP", "name": "Front", "displayOrder": 1},
        ),
        resource(
            "status-page-component",
            "site",
            {
                "statusPageId": ref("colors"),
                "parentId": ref("front"),
                "type": "SERVICE",
                "name": "Site",
                "displayOrder": 2,
            },
        ),
        resource(
            "status-page-automation-rule",
            "on-failure",
            {
                "statusPageId": ref("colors"),
                "name": "The site fails",
                "firstUpdate": "We look into it.",
                "lastUpdate": "It is over.",
                "tags": ["web"],
                "components": [{"componentId": ref("site"), "targetImpact": "MAJOR_OUTAGE"}],
            },
        ),
        resource("check-group", "web", {"name": "Web", "v": 2, "locations": []}),
        resource("check", "basket", browser, sourceFile="src/basket.check.ts"),
        resource("check", "backup", heartbeat),
        url_check(
            "home",
            privateLocations=None,
            triggerIncident={
                "serviceId": ref("payments"),
                "severity": "MAJOR",
                "name": "Home is down",
                "description": "We look into it.",
                "notifySubscribers": False,
            },
        ),
        resource(
            "alert-channel",
            "ops",
            {"type": "EMAIL", "config": {"address": "ops@shop.test"}, "sendDegraded": True},
        ),
        resource(
            "alert-channel-subscription",
            "ops-home",
            {"alertChannelId": ref("ops"), "checkId": ref("home"), "activated": True},
        ),
        resource(
            "alert-channel-subscription",
            "ops-web",
            {"alertChannelId": ref("ops"), "groupId": ref("web"), "activated": True},
        ),
        resource(
            "maintenance-window",
            "sunday",
            {
                "name": "Sunday",
                "tags": ["web"],
                "startsAt": "2031-01-05T02:00:00.000Z",
                "endsAt": "2031-01-05T03:00:00.000Z",
                "repeatInterval": 1,
                "repeatUnit": "WEEK",
            },
        ),
        resource("private-location", "cellar", {"name": "Cellar", "slugName": "cellar"}),
        resource(
            "private-location-check-assignment",
            "home-cellar",
            {"privateLocationId": ref("cellar"), "checkId": ref("home")},
        ),
        resource(
            "private-location-group-assignment",
            "web-cellar",
            {"privateLocationId": ref("cellar"), "groupId": ref("web")},
        ),
    ]
    files = [
        {"path": "src/unused.ts", "content": "export {}"},
        {"path": "src/page.ts", "content": "export const page = 1"},
    ]
    return body(*resources, sharedFiles=files)


async def start_deploying(user: ApiUser, sent: dict[str, Any], query: str = "") -> dict[str, Any]:
    """Ask for a deployment."""
    answer = await user.post(f"{DEPLOY}?{query}", sent)
    assert answer.status == 202, answer.body
    begun: dict[str, Any] = answer.body
    return begun


async def await_end(user: ApiUser, begun: dict[str, Any]) -> dict[str, Any]:
    """The deployment at its end."""
    path = f"/v1/projects/{begun['logicalId']}/deployments/{begun['id']}/completion"
    answer = await user.get(path)
    assert answer.status == 200, answer.body
    ended: dict[str, Any] = answer.body
    return ended


async def deploy(user: ApiUser, sent: dict[str, Any], query: str = "") -> dict[str, Any]:
    """A deployment at its end."""
    return await await_end(user, await start_deploying(user, sent, query))


async def deployed(user: ApiUser, sent: dict[str, Any], query: str = "") -> dict[str, Any]:
    """The diff of a deployment that succeeds, by logical id."""
    ended = await deploy(user, sent, query)
    assert ended["status"] == "SUCCEEDED", ended["error"]
    return by_id(ended["result"])


def by_id(result: dict[str, Any]) -> dict[str, Any]:
    """A diff by logical id."""
    return {one["logicalId"]: one for one in result["diff"]}


def changed(diff: dict[str, Any]) -> dict[str, str]:
    """What is other than before, by logical id."""
    return {name: one["action"] for name, one in diff.items() if one["changed"]}


async def preview(user: ApiUser, sent: dict[str, Any], query: str = "") -> Answer:
    """What a deployment would come to."""
    return await user.post(f"{DEPLOY}?dryRun=true&{query}", sent)
