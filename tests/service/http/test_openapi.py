import re
from typing import Any

from tests.servers.public_api import ApiUser, PublicApi

KINDS = (
    *("api", "url", "tcp", "dns", "icmp", "heartbeat"),
    *("browser", "multistep", "playwright"),
)


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{verb.upper()} {path}", operation)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    ]


def is_open(name: str) -> bool:
    """Whether the operation needs no key."""
    return name.startswith(("GET /v1/locations", "GET /v1/runtimes"))


async def test_the_document_holds_every_operation_and_nothing_of_the_framework(
    alice: ApiUser,
) -> None:
    document = (await alice.get("/openapi.json")).body
    names = {name for name, _ in operations(document)}
    assert names == {
        *(f"POST /v1/checks/{kind}" for kind in KINDS),
        *(f"PUT /v1/checks/{kind}/{{id}}" for kind in KINDS),
        "GET /v1/checks",
        "GET /v1/checks/{id}",
        "DELETE /v1/checks/{id}",
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
        "GET /v1/check-sessions/{checkSessionId}",
        "GET /v1/check-sessions/{checkSessionId}/completion",
        "GET /v1/snippets",
        "POST /v1/snippets",
        "GET /v1/snippets/{id}",
        "PUT /v1/snippets/{id}",
        "DELETE /v1/snippets/{id}",
        "PUT /v1/code-bundles/{sha256}",
        "GET /v1/code-bundles/{sha256}",
    }
    assert "422" not in str(document)
    assert "HTTPValidationError" not in str(document)


async def test_every_operation_says_how_it_refuses(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    for name, operation in operations(document):
        refused = {status for status in operation["responses"] if status >= "4"}
        wanted = {"500"} if is_open(name) else {"400", "401", "403", "429", "500"}
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
            assert "x-service-account" in {one["name"] for one in operation["parameters"]}


async def test_the_trigger_says_what_an_empty_target_means(alice: ApiUser) -> None:
    document = (await alice.get("/openapi.json")).body
    operation = document["paths"]["/v1/check-sessions/trigger"]["post"]
    words = " ".join(operation["description"].split())
    assert "without a target and with an empty one, that is every activated check" in words
    selectors = document["components"]["schemas"]["TargetWrite"]["properties"]
    for name in ("matchTags", "checkId"):
        assert "Null or empty:" in selectors[name]["description"]


async def test_the_page_shows_all_of_it_without_loading_anything(
    api: PublicApi, alice: ApiUser
) -> None:
    page = await api.alice.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page.body)
    document = (await alice.get("/openapi.json")).body
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page.body
