import re
from typing import Any

import pytest

from service.http.openapi import TAGS
from service.routers import document

PARTS = ("properties", "anyOf", "oneOf", "allOf", "items", "additionalProperties")


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]


def titles_of(part: Any) -> list[str]:
    """Titles of schemas; a field may have that name."""
    if isinstance(part, list):
        return [title for one in part for title in titles_of(one)]
    if not isinstance(part, dict):
        return []
    own = [part["title"]] if isinstance(part.get("title"), str) else []
    below = [*part.get("properties", {}).values(), *(part.get(name) for name in PARTS[1:])]
    return own + titles_of(below)


def test_the_tags_are_those_of_operations_and_each_has_one_line() -> None:
    assert {tag["name"]: tag["description"] for tag in document()["tags"]} == dict(TAGS)
    assert {name for _, operation in operations() for name in operation["tags"]} == set(TAGS)
    assert [line for line in TAGS.values() if "\n" in line or not line.endswith(".")] == []


def test_each_operation_has_a_summary_of_its_own() -> None:
    summaries = [operation["summary"] for _, operation in operations()]
    assert len(set(summaries)) == len(summaries)
    assert {"Create API check", "Replace multi-step check", "List static IPs"} <= set(summaries)


def test_each_schema_has_a_title_of_its_own_in_words() -> None:
    schemas = document()["components"]["schemas"]
    titles = [schema["title"] for schema in schemas.values()]
    assert len(set(titles)) == len(titles)
    assert [title for title in titles if re.search(r"[a-z][A-Z]", title)] == [
        title for title in titles if title.endswith("(request with checkType)")
    ]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("TypedUrlCheck", "URL check (request with checkType)"),
        ("UrlCheckWrite", "URL check (request)"),
        ("UrlCheckShown", "URL check"),
        ("Heartbeat", "Heartbeat"),
        ("HeartbeatShown", "Heartbeat (response)"),
        ("GroupV2Write", "Group (v2) (request)"),
    ],
)
def test_a_title_says_what_a_schema_is_for(name: str, title: str) -> None:
    assert document()["components"]["schemas"][name]["title"] == title


def test_a_field_has_no_title_beside_its_name() -> None:
    parts = [operation for _, operation in operations()]
    for schema in document()["components"]["schemas"].values():
        assert titles_of({**schema, "title": None}) == []
    for part in parts:
        assert [titles_of(one["schema"]) for one in part.get("parameters", ())] == [
            [] for _ in part.get("parameters", ())
        ]


def test_the_introduction_says_how_to_get_a_key() -> None:
    introduction = document()["info"]["description"]
    assert "Authorization: Bearer cu_" in introduction
    assert "picket keys create --name" in introduction
