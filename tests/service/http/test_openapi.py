import asyncio
import re
import time
from typing import Any

import aiohttp
from fastapi import FastAPI

from service.checks.types.registry import DEFINITIONS
from service.http.openapi import BODIES, DOCUMENT_PATH, install_openapi
from service.routers import document as of_routers
from tests.servers.public_api import ApiUser, PublicApi, listening

KINDS = (
    *("api", "url", "tcp", "dns", "icmp", "heartbeat"),
    *("browser", "multistep", "playwright", "agentic"),
)
WITH_LISTS = ("", "/services", "/incidents", "/incidents/{incidentId}/incident-updates")
ITEMS = (
    *("/{statusPageId}", "/services/{serviceId}", "/incidents/{incidentId}"),
    "/incidents/{incidentId}/incident-updates/{incidentUpdateId}",
)
DEPLOYMENT = "/v1/projects/{logicalId}/deployments/{deploymentId}"
FORMS = ("", "-by-region", ".txt")
NEEDS_MORE = (
    "POST /v1/checks/playwright",
    "POST /v1/checks/agentic",
    "POST /v1/check-sessions/trigger",
    "POST /v2/check-sessions/trigger",
    "POST /next/test-sessions/trigger",
    "POST /v1/test-sessions/{testSessionId}/cancel",
    "POST /next/projects/{logicalId}/imports",
    "POST /v1/client-certificates",
    "POST /v1/status-pages/incidents",
    "POST /v1/status-pages/incidents/{incidentId}/incident-updates",
    "POST /v1/status-pages/{statusPageId}/subscriptions/bulk",
)
"""A bundle that was sent, a region with a location, checks with these tags, a certificate's key,
a service, an incident, a page."""


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{verb.upper()} {path}", operation)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    ]


def is_open(name: str) -> bool:
    """Whether the operation needs no key."""
    return name.startswith(
        (
            "GET /v1/locations",
            "GET /v1/runtimes",
            "GET /v1/static-",
            "GET /checks/",
            "GET /check-groups/",
            "GET /status-pages/",
        )
    )


async def test_the_document_holds_every_operation_and_nothing_of_the_framework(
    alice: ApiUser,
) -> None:
    document = (await alice.get("/openapi.json")).body
    names = {name for name, _ in operations(document)}
    assert names == {
        *(f"POST /v1/checks/{kind}" for kind in KINDS),
        *(f"PUT /v1/checks/{kind}/{{id}}" for kind in KINDS),
        "GET /v1/accounts",
        "GET /v1/accounts/me",
        "PUT /v1/accounts/me/alert-settings",
        *(f"{verb} /v1/alert-channels" for verb in ("GET", "POST")),
        *(f"{verb} /v1/alert-channels/{{id}}" for verb in ("GET", "PUT", "DELETE")),
        "PUT /v1/alert-channels/{id}/subscriptions",
        "PUT /v1/alert-channels/{id}/subscriptions/bulk",
        "POST /v1/alert-channels/{id}/test",
        "GET /v1/alert-notifications",
        "GET /v1/check-alerts",
        "GET /v1/check-alerts/{checkId}",
        "GET /v1/location-alerts",
        "POST /v1/alert-settings/preview",
        "GET /v1/accounts/{accountId}",
        "GET /next/accounts",
        "GET /next/accounts/{accountId}",
        "GET /next/users/me",
        "GET /v1/accounts/me/entitlements",
        "GET /v1/accounts/{accountId}/entitlements",
        *(f"GET /v1/analytics/{one.analytics.path}/{{id}}" for one in DEFINITIONS if one.analytics),
        "GET /v1/analytics/metrics",
        "POST /v1/analytics/checks",
        "GET /v1/reporting",
        "POST /v1/checks",
        "PUT /v1/checks/{id}",
        "GET /v1/checks/heartbeats/{checkId}/availability",
        "GET /v1/checks/heartbeats/{checkId}/events",
        "GET /v1/checks/heartbeats/{checkId}/events/{id}",
        "GET /v1/badges/checks/{checkId}",
        *(f"GET /v1/static-{ip}{form}" for ip in ("ips", "ipv6s") for form in FORMS),
        "GET /v1/checks",
        "GET /v1/checks/{id}",
        "DELETE /v1/checks/{id}",
        "GET /v1/check-groups",
        "POST /v1/check-groups",
        "POST /v2/check-groups",
        "GET /v1/check-groups/{id}",
        "PUT /v1/check-groups/{id}",
        "PUT /v2/check-groups/{id}",
        "DELETE /v1/check-groups/{id}",
        "GET /v1/check-groups/{id}/checks",
        "GET /v1/check-groups/{groupId}/checks/{checkId}",
        "GET /v1/locations",
        "GET /v1/runtimes",
        "GET /v1/runtimes/{id}",
        "GET /v1/private-locations",
        "POST /v1/private-locations",
        "GET /v1/private-locations/{id}",
        "GET /v1/private-locations/{id}/metrics",
        "PUT /v1/private-locations/{id}",
        "DELETE /v1/private-locations/{id}",
        "POST /v1/private-locations/{id}/keys",
        "DELETE /v1/private-locations/{id}/keys/{keyId}",
        "GET /v1/check-results/{checkId}",
        "GET /v1/check-results/{checkId}/{checkResultId}",
        "GET /v1/check-results/{checkId}/{checkResultId}/assets",
        "GET /v1/check-results/{checkId}/{checkResultId}/assets/{name}",
        "POST /v1/check-sessions/trigger",
        "GET /v2/check-results/{checkId}",
        "GET /v1/error-groups",
        "GET /v1/error-groups/checks/{checkId}",
        "GET /v1/error-groups/{id}",
        "PATCH /v1/error-groups/{id}",
        "GET /v1/prometheus/metrics",
        "GET /v1/check-statuses",
        "GET /v1/check-statuses/{checkId}",
        "GET /v1/check-sessions/{checkSessionId}",
        "GET /v1/check-sessions/{checkSessionId}/completion",
        "POST /v2/check-sessions/trigger",
        "GET /v2/check-sessions/{checkSessionId}/completion",
        "POST /v1/test-sessions/run",
        "GET /v1/test-sessions/{testSessionId}",
        "GET /v1/test-sessions/{testSessionId}/completion",
        "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}",
        "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}/assets",
        "GET /v1/test-sessions/{testSessionId}/results/{testSessionResultId}/assets/{name}",
        "GET /v1/test-sessions",
        "GET /v1/test-sessions/scheduling/{schedulingId}/completion",
        "POST /v1/test-sessions/{testSessionId}/cancel",
        "POST /next/test-sessions/run",
        "POST /next/test-sessions/trigger",
        "GET /next/test-sessions/{testSessionId}/link",
        "GET /next/test-sessions/{testSessionId}/results/{testSessionResultId}/links",
        "GET /next/assets/log/{sequenceId}/{testSessionResultId}",
        "GET /v1/triggers/checks/{checkId}",
        "POST /v1/triggers/checks/{checkId}",
        "DELETE /v1/triggers/checks/{checkId}",
        "GET /checks/{checkId}/trigger/{token}",
        "GET /v1/triggers/check-groups/{groupId}",
        "POST /v1/triggers/check-groups/{groupId}",
        "DELETE /v1/triggers/check-groups/{groupId}",
        "GET /check-groups/{groupId}/trigger/{token}",
        "GET /v1/badges/groups/{groupId}",
        "GET /v1/snippets",
        "POST /v1/snippets",
        "GET /v1/snippets/{id}",
        "PUT /v1/snippets/{id}",
        "DELETE /v1/snippets/{id}",
        *(f"{verb} /v1/status-pages{path}" for verb in ("GET", "POST") for path in WITH_LISTS),
        *(f"{verb} /v1/status-pages{path}" for verb in ("GET", "PUT", "DELETE") for path in ITEMS),
        "GET /status-pages/{url}.json",
        "POST /v1/status-pages/{statusPageId}/keys",
        "GET /v1/status-pages/{statusPageId}/subscriptions",
        "POST /v1/status-pages/{statusPageId}/subscriptions/bulk",
        "DELETE /v1/status-pages/{statusPageId}/subscriptions/{subscriptionId}",
        "GET /v1/variables",
        "POST /v1/variables",
        "GET /v1/variables/{key}",
        "PUT /v1/variables/{key}",
        "DELETE /v1/variables/{key}",
        "GET /v1/client-certificates",
        "POST /v1/client-certificates",
        "GET /v1/client-certificates/{id}",
        "DELETE /v1/client-certificates/{id}",
        "GET /v1/maintenance-windows",
        "POST /v1/maintenance-windows",
        "GET /v1/maintenance-windows/{id}",
        "PUT /v1/maintenance-windows/{id}",
        "DELETE /v1/maintenance-windows/{id}",
        "PUT /v1/code-bundles/{sha256}",
        "GET /v1/code-bundles/{sha256}",
        *(f"POST {path}/projects/deploy" for path in ("/v1", "/next-v2")),
        *(f"GET /v1/projects{path}" for path in ("", "/{logicalId}", "/{logicalId}/deployments")),
        "DELETE /v1/projects/{logicalId}",
        *(f"GET {DEPLOYMENT}{path}" for path in ("", "/events", "/completion")),
        f"POST {DEPLOYMENT}/cancel",
        *(f"{verb} /next/projects" for verb in ("GET", "POST")),
        "GET /next/projects/{logicalId}",
        "GET /next/projects/imports",
        *(f"{verb} /next/projects/{{logicalId}}/imports" for verb in ("GET", "POST")),
        *(f"POST /next/projects/imports/{{importPlanId}}/{act}" for act in ("apply", "commit")),
        "DELETE /next/projects/imports/{importPlanId}",
        "POST /next/checkly-storage/upload-code-bundle",
        "POST /next/checkly-storage/peek-code-bundle",
        "POST /next/checkly-storage/upload",
        "POST /next/checkly-storage/download",
    }
    assert "HTTPValidationError" not in str(document)


async def test_every_operation_says_how_it_refuses(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    for name, operation in operations(document):
        refused = {status for status in operation["responses"] if status >= "4"}
        wanted = {"429", "500"} if is_open(name) else {"400", "401", "403", "429", "500"}
        assert wanted <= refused, name
        for status in refused:
            schema = operation["responses"][status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorBody"}, name


async def test_every_operation_is_described_and_keyed(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    for name, operation in operations(document):
        assert operation["description"], name
        assert operation["tags"], name
        if not is_open(name):
            assert operation["security"] == [{"apiKey": []}], name
            names = {one["name"] for one in operation["parameters"]}
            assert {"x-service-account", "x-checkly-account"} <= names


async def test_each_operation_has_an_id_of_its_own_that_a_program_can_call(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert [one for one in ids if not re.fullmatch(r"[a-z][a-zA-Z0-9]+", one)] == []
    assert [one for one in ids if not re.fullmatch(r"[a-z][a-zA-Z0-9]+", one)] == []
    assert document["paths"]["/v1/snippets"]["post"]["operationId"] == "createSnippet"


def words(part: Any) -> set[str]:
    """All keys of a part of the document."""
    if isinstance(part, dict):
        return set(part).union(*map(words, part.values()))
    return set().union(*map(words, part)) if isinstance(part, list) else set()


def test_limits_stand_in_the_words_of_json_schema() -> None:
    schemas = of_routers()["components"]["schemas"]
    assert words(schemas) & {"ge", "gt", "le", "lt", "min_length", "max_length"} == set()
    fields = schemas["ApiCheckWrite"]["properties"]
    assert [fields[name]["anyOf"][0]["minimum"] for name in ("frequencyOffset", "groupOrder")] == [
        1,
        0,
    ]


QUESTIONS = (
    "POST /v1/alert-settings/preview",
    "POST /v1/analytics/checks",
    "POST /v1/alert-channels/{id}/test",
    "POST /next/checkly-storage/peek-code-bundle",
    "POST /next/checkly-storage/download",
    "POST /next/checkly-storage/upload-code-bundle",
    "POST /next/checkly-storage/upload",
)
"""Nothing changes when these are sent again: questions, and bytes that are kept by their hash."""


async def test_what_may_be_sent_twice_and_what_may_not_says_so(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    for name, operation in operations(document):
        named = {one["name"] for one in operation.get("parameters", ())}
        does_more = name.startswith("POST") and name not in QUESTIONS
        assert ("Idempotency-Key" in named) == does_more, name
        assert ("422" in operation["responses"]) == does_more, name


async def test_each_operation_with_a_body_has_an_example_that_it_takes(
    api: PublicApi, alice: ApiUser
) -> None:
    document = (await alice.get("/openapi.json")).body
    shown = {
        name: operation["requestBody"]["content"]["application/json"]["example"]
        for name, operation in operations(document)
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert shown.items() >= BODIES.items()
    for name, body in sorted(shown.items()):
        if name.startswith("POST") and name not in (*NEEDS_MORE, *QUESTIONS):
            answer = await api.alice.post(name.removeprefix("POST "), body)
            assert answer.status in (200, 201, 202), (name, answer.body)


async def test_each_refusal_has_an_example(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if status >= "4":
                example = response["content"]["application/json"]["example"]
                assert example["statusCode"] == int(status), name


async def test_the_document_can_be_had_without_a_service(alice: ApiUser) -> None:
    assert of_routers() == (await alice.get("/openapi.json")).body


async def test_the_trigger_says_what_an_empty_target_means(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    operation = document["paths"]["/v1/check-sessions/trigger"]["post"]
    words = " ".join(operation["description"].split())
    assert "without a target and with `{}` for one, that is every activated check" in words
    assert "a selector that is an empty list chooses none" in words
    selectors = document["components"]["schemas"]["TargetWrite"]["properties"]
    assert "Left out: whatever the tags" in selectors["matchTags"]["description"]
    assert "Left out: whichever the check" in selectors["checkId"]["description"]


async def test_a_document_that_several_ask_for_at_once_is_made_once() -> None:
    app, made = FastAPI(openapi_url=None), []

    def document() -> dict[str, Any]:
        made.append(1)
        time.sleep(0.05)  # long enough for the others to come
        return {"openapi": "3.1.0"}

    install_openapi(app, document)
    async with listening(app) as url, aiohttp.ClientSession() as http:

        async def ask() -> int:
            async with http.get(url + DOCUMENT_PATH) as answer:
                return answer.status

        assert await asyncio.gather(*(ask() for _ in range(4))) == [200] * 4

    assert made == [1]
