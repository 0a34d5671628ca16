"""An account that has one of everything that files can say, made over the API."""

from typing import Any, Final

from tests.builders.alert_channels import CONFIGS, a_channel
from tests.builders.check_bodies import AGENTIC, check_body, script_body, with_request
from tests.builders.status_pages import a_page, a_service
from tests.servers.public_api import ApiUser

SECRET: Final = "correct-horse-battery"
"""In every place that takes a secret."""
_ODD_TEXTS: Final = (
    "1e3",
    "no",
    "${NOT_A_NAME} and $${X}",
    "07",
    "a: b # c",
    "ß\ttab",
    "two\nlines\n",
)


async def fill_account(user: ApiUser) -> None:
    """Create checks of each type, groups, channels, windows, locations, services and pages."""
    channels = [await a_channel(user, kind) for kind in CONFIGS]
    place = {"name": "Cellar", "slugName": "cellar", "proxyUrl": f"http://u:{SECRET}@proxy.test:1"}
    await _post(user, "/v1/private-locations", place)
    await _post(user, "/v1/private-locations", {"name": "East", "slugName": "us-east-1"})
    service = await a_service(user)
    await a_page(user, service, description="What works", defaultTheme="DARK")
    await _post(user, "/v1/maintenance-windows", _window())
    first = await _post(user, "/v1/check-groups", {"name": "Old", "privateLocations": ["cellar"]})
    second = await _post(user, "/v2/check-groups", _group(channels[0]))
    for number, body in enumerate(_checks(service)):
        kind, fields = body
        groups = {"groupId": (None, first["id"], second["id"])[number % 3]}
        heard = {"alertChannelSubscriptions": [_heard(channels[number % len(channels)])]}
        await _post(user, f"/v1/checks/{kind}", {**groups, **heard, **fields})


async def _post(user: ApiUser, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(path, body)
    assert answer.status in (200, 201), (path, answer.body)
    found: dict[str, Any] = answer.body
    return found


def _heard(channel: int) -> dict[str, Any]:
    return {"alertChannelId": channel, "activated": True}


def _window() -> dict[str, Any]:
    return {
        "name": "Nightly",
        "tags": ["shop"],
        "startsAt": "2027-01-01T02:00:00.000Z",
        "endsAt": "2027-01-01T03:00:00.000Z",
        "repeatInterval": 1,
        "repeatUnit": "DAY",
    }


def _group(channel: int) -> dict[str, Any]:
    defaults = {
        "url": "https://shop.test",
        "headers": [{"key": "x-tenant", "value": SECRET, "locked": True}],
        "basicAuth": {"username": "probe", "password": SECRET},
    }
    return {
        "name": "Shop",
        "tags": ["shop"],
        "apiCheckDefaults": defaults,
        "environmentVariables": _variables(),
        "localSetupScript": "// before\nawait 0\n",
        "alertChannelSubscriptions": [_heard(channel)],
    }


def _variables() -> list[dict[str, Any]]:
    odd = [{"key": f"ODD_{order}", "value": text} for order, text in enumerate(_ODD_TEXTS)]
    return [
        *odd,
        {"key": "LOCKED", "value": SECRET, "locked": True},
        {"key": "SECRET", "value": SECRET, "secret": True},
    ]


def _checks(service: str) -> list[tuple[str, dict[str, Any]]]:
    incident = {
        "serviceId": service,
        "severity": "MAJOR",
        "name": "Orders fail",
        "description": "They do.",
        "notifySubscribers": False,
    }
    request = {
        "method": "POST",
        "body": "{}",
        "bodyType": "JSON",
        "headers": [{"key": "Authorization", "value": SECRET}, {"key": "accept", "value": "${A}"}],
        "basicAuth": {"username": "probe", "password": SECRET},
        "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "201"}],
    }
    files = [{"path": "lib/shop.ts", "content": "export const shop = `${1}`;\n"}]
    retries = {"type": "LINEAR", "baseBackoffSeconds": 30, "maxRetries": 3}
    api = with_request("api", **request)
    guarded = f"https://probe:{SECRET}@shop.test/?a=${{B}}"
    return [
        ("api", {**api, "environmentVariables": _variables(), "triggerIncident": incident}),
        ("url", check_body("url", name="Front", degradedResponseTime=None, retryStrategy=retries)),
        ("url", check_body("url", name="Home", activated=False, tags=["a", "b"])),
        ("url", {**with_request("url", url=guarded), "name": "Guarded"}),
        ("tcp", check_body("tcp", frequency=0, frequencyOffset=10)),
        ("dns", check_body("dns", shouldFail=True, runParallel=True)),
        ("icmp", check_body("icmp", privateLocations=["cellar", "default"], description="A\nB")),
        ("heartbeat", check_body("heartbeat")),
        ("browser", script_body("browser", playwrightConfig={"timeout": 1000})),
        ("multistep", script_body("multistep", scriptPath="e2e/order.ts", dependencies=files)),
        ("agentic", {**AGENTIC, "locations": ["us-east-1"], "groupId": None}),
    ]
