"""docs/api.md names each operation of the public API and a test that is there."""

import re
from pathlib import Path

import pytest

from service.routers import document

ROOT = Path(__file__).resolve().parents[2]
ROWS = dict(
    re.findall(
        r"^\| `([A-Z]+ /\S+)` \| (.*) \|$",
        (ROOT / "docs" / "api.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
)
READ = re.findall(
    r"^\| .* \| (`/v\S+`(?:, `/v\S+`)*) \| (.*)\|$",
    (ROOT / "docs" / "api.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


@pytest.mark.parametrize(("paths", "told"), READ)
def test_the_page_names_the_query_parameters_of_what_there_is_to_read(
    paths: str, told: str
) -> None:
    for path in re.findall(r"`(\S+)`", paths):
        parameters = document()["paths"][path]["get"].get("parameters", ())
        known = {one["name"] for one in parameters if one["in"] == "query"} - {"limit", "page"}
        same = {"from", "to", "location", "hasFailures", "resultType", "checkType"}
        named = set(re.findall(r"`([A-Za-z]+)`", told)) & (known | {"nextId", "fields"})
        assert known == named | (same if "of the line before" in told else set())


def test_the_page_lists_the_operations_of_the_document() -> None:
    operations = {
        f"{verb.upper()} {path}": operation["operationId"]
        for path, verbs in document()["paths"].items()
        for verb, operation in verbs.items()
    }
    assert {name: row.split("`")[1] for name, row in ROWS.items()} == operations


@pytest.mark.parametrize("name", ROWS)
def test_each_operation_has_a_test_that_asks_its_path(name: str) -> None:
    test = ROOT / "tests" / "service" / ROWS[name].split("`")[3]
    parts = name.split()[1].split("/")[:3]
    start = "/".join(part for part in parts if not part.startswith("{"))
    assert start in test.read_text(encoding="utf-8")
