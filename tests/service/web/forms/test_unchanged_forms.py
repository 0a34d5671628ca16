"""A form that is sent as it was shown changes nothing, whatever is stored."""

from collections.abc import Container
from typing import Any

import pytest
from sqlalchemy import Connection

from service.checks.types.registry import DEFINITIONS
from service.groups import actions as groups
from service.groups.model import Form as Written
from service.variables import actions as variables
from service.variables.schemas import compare
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


_FULL_GROUP = {
    "name": "Shop",
    "activated": False,
    "muted": True,
    "tags": ["a, b"],
    "privateLocations": ["default"],
    "concurrency": 7,
    "apiCheckDefaults": {
        "url": "https://user:very-secret-6@shop.example",
        "headers": [_LOCKED],
        "queryParameters": [{"key": "a", "value": "b"}],
        "basicAuth": {"username": "u", "password": "very-secret-7"},
        "assertions": _API_ASSERTIONS,
    },
    "browserCheckDefaults": '{"a": 1}',
    "environmentVariables": _VARIABLES,
    "localSetupScript": "\nconst a = 1\n",
    "alertSettings": _FULL_ALERTS,
    "runParallel": True,
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(
    "body",
    [
        {"name": "Plain"},
        {**_FULL_GROUP, "retryStrategy": "FALLBACK"},
        {**_FULL_GROUP, "retryStrategy": _FULL_RETRIES},
    ],
    ids=["plain", "fallback", "strategy"],
)
async def test_the_form_of_a_group_sent_as_shown_changes_nothing(
    api: PublicApi, web: WebUser, version: str, body: dict[str, Any]
) -> None:
    made = await api.alice.post(f"/{version}/check-groups", body)
    assert made.status == 201, made.body
    number = made.body["id"]
    before = await _written(api, number)

    assert await send_as_shown(web, f"/groups/{number}/edit") == f"/groups/{number}"

    after = await api.alice.get(f"/v1/check-groups/{number}")
    assert after.body == {**made.body, "updated_at": after.body["updated_at"]}
    assert await _written(api, number) == before


async def _written(api: PublicApi, number: int) -> Written:
    """Which form of the API wrote a group."""
    account_id = api.alice.secrets.account_id
    row = await api.database.read(lambda c: groups.find(c, account_id, number))
    return row.form


_CHANNELS: list[dict[str, Any]] = [
    {"type": "EMAIL", "config": {"address": "ops@shop.example"}, "autoSubscribe": True},
    {"type": "SLACK", "config": {"url": "https://hooks.example/very-secret-8", "channel": "#ops"}},
    {
        "type": "WEBHOOK",
        "config": {
            "name": "Own",
            "url": "https://hooks.example/very-secret-9",
            "webhookType": "WEBHOOK_MSTEAMS",
            "method": "PUT",
            "template": '\n{"a": "{{ALERT_TITLE}}"}\n',
            "headers": [{"key": "a", "value": "very-secret-10", "locked": True}],
            "queryParameters": [{"key": "b", "value": "very-secret-11"}],
            "webhookSecret": "very-secret-12",
        },
        "sendFailure": False,
        "sslExpiry": True,
        "sslExpiryThreshold": 14,
    },
    {"type": "PAGERDUTY", "config": {"serviceKey": "very-secret-13", "serviceName": "Shop"}},
    {"type": "OPSGENIE", "config": {"apiKey": "very-secret-14", "region": "EU", "priority": "P1"}},
    {"type": "SMS", "config": {"number": "+4930123456", "name": "On call"}},
    {"type": "CALL", "config": {"number": "+4930123456"}},
]


@pytest.mark.parametrize("body", _CHANNELS, ids=lambda body: body["type"])
async def test_the_form_of_a_channel_sent_as_shown_changes_nothing(
    api: PublicApi, web: WebUser, body: dict[str, Any]
) -> None:
    group = await api.alice.post("/v2/check-groups", {"name": "Shop"})
    subscriptions = [{"groupId": group.body["id"], "activated": False}]
    made = await api.alice.post("/v1/alert-channels", {**body, "subscriptions": subscriptions})
    assert made.status == 201, made.body
    number = made.body["id"]

    assert await send_as_shown(web, f"/channels/{number}/edit") == "/channels"

    after = (await api.alice.get(f"/v1/alert-channels/{number}")).body
    for one in (after, made.body):
        one["subscriptions"] = [{**each, "id": 0} for each in one["subscriptions"]]
    assert after == {**made.body, "updated_at": after["updated_at"]}


@pytest.mark.parametrize("body", _VARIABLES, ids=lambda body: body["key"])
async def test_the_form_of_a_variable_sent_as_shown_changes_nothing(
    api: PublicApi, web: WebUser, body: dict[str, Any]
) -> None:
    await api.alice.post("/v1/variables", body)

    def read(connection: Connection) -> dict[str, Any]:
        row = variables.find(connection, api.alice.secrets.account_id, body["key"])
        return compare(row, api.backend.vault)

    path = f"/settings/variables/{body['key']}/edit"
    assert await send_as_shown(web, path) == "/settings/variables"
    assert await api.database.read(read) == body


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"repeatInterval": 2, "repeatUnit": "WEEK", "repeatEndsAt": "2031-01-01"},
        {"rrule": "FREQ=MONTHLY;BYDAY=1FR", "tags": ["a, b"]},
        {"startsAt": "2030-03-01T03:00:00.120Z", "timeZone": "Asia/Kathmandu"},
        # Clocks show this hour twice.
        {"startsAt": "2030-10-27T00:30:00Z", "endsAt": "2030-10-27T01:30:00Z"},
    ],
)
async def test_the_form_of_a_maintenance_window_sent_as_shown_changes_nothing(
    api: PublicApi, web: WebUser, body: dict[str, Any]
) -> None:
    start = {"startsAt": "2030-03-01T03:00:00Z", "endsAt": "2030-12-01T04:30:05Z"}
    short = {"startsAt": "2030-03-01T03:00:00Z", "endsAt": "2030-03-01T04:30:05Z"}
    times = start if not body else short
    made = await api.alice.post(
        "/v1/maintenance-windows",
        {"name": "Upgrade", "timeZone": "Europe/Berlin", **times, **body},
    )
    assert made.status == 201, made.body
    number = made.body["id"]

    assert await send_as_shown(web, f"/maintenance/{number}/edit") == "/maintenance"

    after = (await api.alice.get(f"/v1/maintenance-windows/{number}")).body
    assert after == {**made.body, "updated_at": after["updated_at"]}


def test_a_shape_cannot_be_a_field_of_the_api() -> None:
    assert not SHAPE.isidentifier()
