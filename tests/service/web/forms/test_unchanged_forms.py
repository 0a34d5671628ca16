"""A form that is sent as it was shown changes nothing, whatever is stored."""

from collections.abc import Container
from typing import Any

import pytest

from service.checks.types.registry import DEFINITIONS
from service.web.forms.form_state import SHAPE
from tests.builders.code_bundles import a_bundle, bundle_bytes, sha256_of
from tests.servers.public_api import PublicApi
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser

_LOCKED = {"key": "x-token", "value": "very-secret-1", "locked": True}
_FULL_ALERTS = {
    "escalationType": "TIME_BASED",
    "runBasedEscalation": {"failedRunThreshold": 3},
    "timeBasedEscalation": {"minutesFailingThreshold": 10},
    "reminders": {"amount": 100_000, "interval": 15},
    "parallelRunFailureThreshold": {"enabled": True, "percentage": 30},
}
_FULL_RETRIES = {
    "type": "LINEAR",
    "baseBackoffSeconds": 1.5,
    "sameRegion": False,
    "maxRetries": 4,
    "maxDurationSeconds": 120,
    "onlyOn": "NETWORK_ERROR",
}
_COMMON = {
    "name": '  Été \N{ZEBRA FACE} "quoted" <b>\nsecond line  ',
    "activated": False,
    "muted": True,
    "tags": ["plain", "with, comma", "two\nlines", '"quoted"', " blank ", "-1"],
    "locations": ["eu-west-1", "us-east-1"],
    "description": "\nbegins with a line",
    "alertSettings": _FULL_ALERTS,
    "useGlobalAlertSettings": None,
    "groupOrder": 1e-7,
    "runtimeId": "2025.04",
    "retryStrategy": _FULL_RETRIES,
    "frequency": 10,
    "frequencyOffset": 17,
}
_VARIABLES = [
    {"key": "PLAIN", "value": "  a\nb\n", "locked": False, "secret": False},
    {"key": "LOCKED", "value": "very-secret-2", "locked": True, "secret": False},
    {"key": "SECRET", "value": "very-secret-3", "locked": False, "secret": True},
]
_HTTP = {
    "url": "https://user:very-secret-4@shop.example/a?b=c",
    "acceptedStatusCodes": ["200-299", "404"],
    "skipSSL": True,
    "ipFamily": "IPv6",
    "connectTo": "[::1]:8443",
    "httpVersion": "HTTP_2",
}
_API_ASSERTIONS = [
    {"source": "JSON_BODY", "comparison": "EQUALS", "property": "$.a", "target": " x "},
    {"source": "HEADERS", "comparison": "CONTAINS", "property": "etag", "regex": "(a+)"},
    {"source": "STATUS_CODE", "comparison": "LESS_THAN", "target": "300"},
]
_SCRIPT = {
    "script": "\nconst x = 1\n\n",
    "scriptPath": "checks/a.spec.ts",
    "dependencies": [{"path": "checks/b.ts", "content": "\nexport const b = 2\n"}],
    "playwrightConfig": {"use": {"locale": "de-DE"}, "timeout": 1000},
    "environmentVariables": _VARIABLES,
}
_OF_TYPE: dict[str, dict[str, Any]] = {
    "API": {
        "request": {
            **_HTTP,
            "method": "POST",
            "body": '\n{\n  "a": 1\n}\n',
            "bodyType": "JSON",
            "headers": [{"key": "accept", "value": " */* "}, _LOCKED],
            "queryParameters": [{"key": "a", "value": ""}, {"key": "a", "value": "b"}],
            "basicAuth": {"username": "u", "password": "very-secret-5"},
            "assertions": _API_ASSERTIONS,
        },
        "degradedResponseTime": None,
        "maxResponseTime": 1234.5,
        "localSetupScript": "\nconst a = 1\n",
        "localTearDownScript": "const b = 2",
        "environmentVariables": _VARIABLES,
        "shouldFail": True,
        "frequency": 0,
        "frequencyOffset": 20,
    },
    "URL": {
        "request": {
            **_HTTP,
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
        },
        "environmentVariables": _VARIABLES,
    },
    "TCP": {"request": {"hostname": "shop.example", "port": 443, "data": "\nPING\n"}},
    "DNS": {
        "request": {
            "recordType": "TXT",
            "query": "shop.example",
            "nameServer": "9.9.9.9",
            "port": 5353,
            "protocol": "TCP",
        }
    },
    "ICMP": {"request": {"hostname": "shop.example", "pingCount": 3}},
    "HEARTBEAT": {
        "heartbeat": {
            "period": 1.5,
            "periodUnit": "days",
            "grace": 30,
            "graceUnit": "minutes",
            "pingToken": "token-of-test",
        }
    },
    "BROWSER": {**_SCRIPT, "sslCheckDomain": "shop.example"},
    "MULTI_STEP": _SCRIPT,
    "PLAYWRIGHT": {
        "codeBundlePath": sha256_of(bundle_bytes()),
        "testCommand": "npx playwright test --project=a",
        "browsers": ["webkit", "chromium"],
        "environmentVariables": _VARIABLES,
    },
    "AGENTIC": {"prompt": "\nOpen it.\n", "agentRuntime": {"skills": ["browser", "a\nb"]}},
}


async def send_as_shown(web: WebUser, path: str) -> str:
    """Open a form and send it; where one lands."""
    shown = await web.get(path)
    assert shown.status == 200, shown.text
    assert "very-secret" not in shown.text
    sent = await web.post(path, Pairs(form_pairs(shown.text)))
    assert sent.status == 303, sent.text
    return str(sent.headers["location"])


async def _neighbours(api: PublicApi, refused: Container[str]) -> dict[str, Any]:
    """What a full check refers to."""
    alice = api.alice
    mail = {"type": "EMAIL", "config": {"address": "ops@shop.example"}}
    channel = await alice.post("/v1/alert-channels", mail)
    group = await alice.post("/v2/check-groups", {"name": "Shop"})
    service = await alice.post("/v1/status-pages/services", {"name": "Shop"})
    found = {
        "alertChannelSubscriptions": [{"alertChannelId": channel.body["id"], "activated": False}],
        "groupId": group.body["id"],
        "triggerIncident": {
            "serviceId": service.body["id"],
            "severity": "MAJOR",
            "name": " It fails ",
            "description": "a\nb",
            "notifySubscribers": True,
        },
    }
    return {name: value for name, value in found.items() if name not in refused}


def test_every_type_of_check_has_a_full_example() -> None:
    assert {one.kind for one in DEFINITIONS} == set(_OF_TYPE)


@pytest.mark.parametrize("kind", sorted(_OF_TYPE))
@pytest.mark.parametrize("filled", ["full", "plain"])
async def test_the_form_of_a_check_sent_as_shown_changes_nothing(
    api: PublicApi, web: WebUser, kind: str, filled: str
) -> None:
    is_full = filled == "full"
    definition = next(one for one in DEFINITIONS if one.kind == kind)
    fields = {**_COMMON, **_OF_TYPE[kind]} if is_full else _OF_TYPE[kind]
    refused = definition.write.refused
    body = {name: value for name, value in fields.items() if name not in refused}
    for slug in ("us-east-1", "eu-west-1"):
        await api.alice.post("/v1/private-locations", {"name": slug, "slugName": slug})
    await a_bundle(api.alice)
    if "privateLocations" not in refused:
        body["privateLocations"] = ["default"]
    if is_full:
        body |= await _neighbours(api, refused)
    path = f"/v1/checks/{definition.kind.path_segment}"
    made = await api.alice.post(path, {"name": "Plain", **body})
    assert made.status == 201, made.body
    check = f"/checks/{made.body['id']}"

    assert await send_as_shown(web, f"{check}/edit") == check

    after = await api.alice.get(f"/v1{check}")
    expected = {**made.body, "updated_at": after.body["updated_at"]}
    assert after.body == expected


def test_a_shape_cannot_be_a_field_of_the_api() -> None:
    assert not SHAPE.isidentifier()
