"""The API held to the specification's own tables, which `specification.md` has word for word.

What a table says of a field (type, default, range, enumeration, length, when it is there) becomes
a test of the document, and of the service where it says what is taken and what is not.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from service.routers import document
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser

TEXT: Final = Path(__file__).with_name("specification.md").read_text(encoding="utf-8")
DOCUMENT: Final = document()
SCHEMAS: Final[Mapping[str, Any]] = DOCUMENT["components"]["schemas"]
TYPES: Final = {
    "string": "string",
    "enum": "string",
    "enum string": "string",
    "date": "string",
    "date-time": "string",
    "boolean": "boolean",
    "integer": "number",
    "enum integer": "number",
    "number": "number",
    "object": "object",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A field as a table has it."""

    name: str
    type: str
    rules: str

    @property
    def json_type(self) -> str:
        plain = self.type.removesuffix(" or null")
        return "array" if plain.endswith("[]") else TYPES[plain]

    @property
    def is_nullable(self) -> bool:
        return self.type.endswith(" or null")

    @property
    def in_request(self) -> bool:
        return "Response only" not in self.rules


def section(title: str) -> str:
    """What stands below a heading."""
    return re.split(r"\n#+ ", TEXT.split(f"# {title}\n", 1)[1], maxsplit=1)[0]


def table(text: str) -> list[Row]:
    """The first table of a text; without its head."""
    found = re.findall(r"^\| ([\w_]+) \| ([^|]+) \|(?: ([^|\n]*) ?\|)?$", text, re.MULTILINE)
    return [
        Row(name, kind.strip(), rules.strip()) for name, kind, rules in found if name != "Field"
    ]


def in_prose(text: str, begin: str) -> list[Row]:
    """Fields such as `name` (type) of one paragraph."""
    line = next(one for one in text.splitlines() if one.startswith(begin))
    found = re.findall(r"`(\w+)` \((string\[\]|[a-z-]+(?: or null)?)[;)]", line)
    return [Row(name, kind, "") for name, kind in found]


def quoted(text: str, begin: str) -> list[str]:
    """The allowed values that a line lists."""
    line = next(one for one in text.splitlines() if one.startswith(begin))
    return re.findall(r"`([^`]+)`", line)[1:]


CHECK_TEXT: Final = section("API check")
CHECK: Final = table(CHECK_TEXT.split("`frequencyOffset` rules", 1)[0])
REQUEST: Final = table(CHECK_TEXT.split("API check request object:", 1)[1].split("Allowed", 1)[0])
ALERTS: Final = table(CHECK_TEXT.split("Alert settings object:", 1)[1].split("The value", 1)[0])
RETRY: Final = in_prose(CHECK_TEXT, "Retry strategy object")
INCIDENT: Final = in_prose(CHECK_TEXT, "Trigger incident object")
SESSION: Final = table(section("Check session"))
LOCATION: Final = table(section("Private location"))
SNIPPET: Final = in_prose(section("Snippet"), "`id`")
ERROR_GROUP: Final = table(section("Error group"))
LIMITS: Final = {
    (limit, of): value
    for limit, of, value in re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", section("Limits"), re.MULTILINE
    )
}
RESOURCES: Final = (
    ("ApiCheckWrite", [row for row in CHECK if row.in_request]),
    ("ApiCheckShown", CHECK),
    ("RetryStrategy", RETRY),
    ("TriggerIncident", INCIDENT),
    ("SessionWithResults", SESSION),
    ("LocationWithVersions", LOCATION),
    ("SnippetShown", SNIPPET),
    ("ErrorGroupShown", ERROR_GROUP),
)
FIELDS: Final = [(schema, row) for schema, rows in RESOURCES for row in rows]


def whole(schema: Any) -> dict[str, Any]:
    """A schema with what it refers to."""
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def kinds(schema: Any) -> set[str]:
    """The JSON types that it takes; integers are numbers."""
    given = whole(schema)
    if "anyOf" in given:
        return set().union(*(kinds(one) for one in given["anyOf"]))
    own = given.get("type") or ("string" if isinstance(given.get("const"), str) else "object")
    return {"number" if own == "integer" else own}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that stands inside it."""
    given = whole(schema)
    yield given
    for one in (*given.get("anyOf", ()), *([given["items"]] if "items" in given else ())):
        yield from parts(one)


def property_of(schema: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMAS[schema]["properties"][name]
    return found


def test_the_tables_are_read_whole() -> None:
    sizes = [len(rows) for rows in (CHECK, REQUEST, ALERTS, RETRY, INCIDENT, SESSION, LOCATION)]
    assert sizes == [32, 11, 4, 6, 5, 11, 12]
    assert [row.name for row in SNIPPET] == ["id", "name", "script", "created_at", "updated_at"]
    assert len(LIMITS) == 14


@pytest.mark.parametrize(("schema", "row"), FIELDS, ids=lambda one: getattr(one, "name", one))
def test_each_field_is_there_with_its_type(schema: str, row: Row) -> None:
    found = kinds(property_of(schema, row.name))
    # `results` is an object in the table, and not shown; what clients read is a list.
    wanted = "array" if row.name == "results" else row.json_type
    assert wanted in found, found
    if row.is_nullable and schema.endswith("Write"):
        assert "null" in found


@pytest.mark.parametrize("row", REQUEST, ids=lambda row: row.name)
def test_each_field_of_a_request_is_there(row: Row) -> None:
    found = property_of("ApiRequest", row.name)
    if row.type.startswith(("items of", "object of")):
        named = {name for one in parts(found) for name in one.get("properties", ())}
        assert set(re.findall(r"`(\w+)`", row.type)) <= named
    else:
        assert row.json_type in kinds(found)


@pytest.mark.parametrize("row", ALERTS, ids=lambda row: row.name)
def test_each_field_of_alert_settings_is_there(row: Row) -> None:
    found = property_of("AlertSettings", row.name)
    named = {name for one in parts(found) for name in one.get("properties", ())}
    assert set(re.findall(r"`(\w+)`", row.type)) <= named
    if row.name == "escalationType":
        assert "RUN_BASED" in found["enum"]


@pytest.mark.parametrize("row", CHECK, ids=lambda row: row.name)
def test_each_field_is_required_or_only_answered_as_the_table_says(row: Row) -> None:
    body = SCHEMAS["ApiCheckWrite"]
    assert (row.name in body["required"]) == row.rules.startswith("Required")
    assert (row.name in body["properties"]) == row.in_request


@pytest.mark.parametrize("row", [row for row in CHECK if "Default" in row.rules], ids=str)
async def test_each_default_is_filled_in(alice: ApiUser, row: Row) -> None:
    (said,) = re.findall(r"Default (\w+)", row.rules)
    wanted = {"true": True, "false": False}.get(said, said)
    made = (await alice.post("/v1/checks/api", check_body("api"))).body
    assert str(made[row.name]) == str(wanted)
    assert str(property_of("ApiCheckWrite", row.name)["default"]) == str(wanted)


def edges(row: Row) -> list[tuple[Any, int]]:
    """Both sides of each limit that a row tells: a value, and the status that it gets."""
    found: list[tuple[Any, int]] = []
    for low, high in re.findall(r"Range (\d+)\.\.(\d+)", row.rules):
        found += [(int(low), 201), (int(low) - 1, 400), (int(high), 201), (int(high) + 1, 400)]
    for least in re.findall(r"Minimum (\d+)", row.rules):
        found += [(int(least), 201), (int(least) - 1, 400)]
    for most in re.findall(r"Maximum length (\d+)", row.rules):
        found += [("x" * int(most), 201), ("x" * (int(most) + 1), 400)]
    for allowed in re.findall(r"Allowed: ([\d, ]+)", row.rules):
        numbers = [int(one) for one in allowed.split(",")]
        near = {one + 1 for one in numbers} - set(numbers)
        found += [(one, 201) for one in numbers] + [(one, 400) for one in sorted(near)]
    return found


EDGES: Final = [(row.name, value, status) for row in CHECK for value, status in edges(row)]


@pytest.mark.parametrize(("name", "value", "status"), EDGES)
async def test_both_sides_of_each_limit(alice: ApiUser, name: str, value: Any, status: int) -> None:
    more = {"frequencyOffset": 10} if (name, value) == ("frequency", 0) else {}
    answer = await alice.post("/v1/checks/api", check_body("api", **{name: value}, **more))
    assert answer.status == status, answer.body
    if status == 400:
        assert answer.body["validation"]["keys"] == [name]


def test_limits_of_the_limits_table_are_those_of_the_fields() -> None:
    told = {name: sorted(v for n, v, s in EDGES if n == name and s == 201) for name, _, _ in EDGES}
    assert LIMITS["degradedResponseTime, maxResponseTime", "checks"] == "0..30000 ms"
    assert told["degradedResponseTime"] == told["maxResponseTime"] == [0, 30_000]
    assert LIMITS["description", "checks"] == "at most 500 characters"
    assert [len(text) for text in told["description"]] == [500]
    assert LIMITS["groupOrder", "checks"] == "at least 0"
    assert told["groupOrder"] == [0]


OFFSETS: Final = [
    *((0, offset, 201 if offset in {10, 20, 30} else 400) for offset in (1, 9, 10, 20, 25, 30, 31)),
    *(
        (minutes, minutes * 10 + more, 201 + more * 199)
        for minutes in (1, 5, 60)
        for more in (0, 1)
    ),
    *(
        (minutes, -(-minutes // 60) + more, 201 + more * 199)
        for minutes in (120, 180, 720, 1440)
        for more in (0, 1)
    ),
    *((minutes, 0, 400) for minutes in (0, 1, 60, 1440)),
]


@pytest.mark.parametrize(("frequency", "offset", "status"), OFFSETS)
async def test_the_three_rules_of_the_offset(
    alice: ApiUser, frequency: int, offset: int, status: int
) -> None:
    body = check_body("api", frequency=frequency, frequencyOffset=offset)
    assert (await alice.post("/v1/checks/api", body)).status == status


@pytest.mark.parametrize("kind", ["api", "tcp"])
async def test_api_and_tcp_checks_run_every_few_seconds(alice: ApiUser, kind: str) -> None:
    body = check_body(kind, frequency=0, frequencyOffset=10)
    assert (await alice.post(f"/v1/checks/{kind}", body)).status == 201


@pytest.mark.parametrize("kind", ["url", "dns", "icmp", "heartbeat"])
async def test_no_other_check_runs_every_few_seconds(alice: ApiUser, kind: str) -> None:
    body = check_body(kind, frequency=0, frequencyOffset=10)
    assert (await alice.post(f"/v1/checks/{kind}", body)).status == 400


def test_the_regions_are_those_of_the_table() -> None:
    wanted = quoted(CHECK_TEXT, "`locations` allowed values")
    assert len(wanted) == 22
    allowed = [
        part["enum"] for part in parts(property_of("ApiCheckWrite", "locations")) if "enum" in part
    ]
    assert allowed == [wanted]


async def test_each_region_is_listed(alice: ApiUser) -> None:
    listed = [one["region"] for one in (await alice.get("/v1/locations")).body]
    assert listed == quoted(CHECK_TEXT, "`locations` allowed values")


async def test_each_runtime_is_taken_and_no_other(alice: ApiUser) -> None:
    wanted = quoted(CHECK_TEXT, "`runtimeId` allowed values")
    assert len(wanted) == 7
    statuses = [
        (await alice.post("/v1/checks/api", check_body("api", runtimeId=one))).status
        for one in (*wanted, "2021.06")
    ]
    assert statuses == [201] * 7 + [400]


def parameter(path: str, name: str) -> dict[str, Any]:
    found = DOCUMENT["paths"][path]["get"]["parameters"]
    (one,) = [one for one in found if one["name"] == name]
    schema: dict[str, Any] = one["schema"]
    return schema


def test_lists_and_waits_have_the_limits_of_the_table() -> None:
    assert LIMITS["limit", "analytics series, check alerts, snippets"] == "1..100, default 10"
    limit = parameter("/v1/snippets", "limit")
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 10)
    assert LIMITS["page", "analytics series, check alerts, snippets"] == "number, default 1"
    assert parameter("/v1/snippets", "page")["default"] == 1
    assert LIMITS["wait time", "session wait"] == "1..30 seconds, default 30"
    wait = parameter("/v1/check-sessions/{checkSessionId}/completion", "maxWaitSeconds")
    assert (wait["minimum"], wait["maximum"], wait["default"]) == (1, 30, 30)


def test_states_and_types_of_a_session_are_those_of_the_table() -> None:
    rows = {row.name: re.findall(r"`([A-Z_]+)`", row.rules) for row in SESSION}
    status = whole(property_of("SessionShown", "status"))["enum"]
    assert set(rows["status"]) <= set(status)
    types = whole(property_of("SessionShown", "checkType"))["enum"]
    assert set(rows["checkType"]) <= set(types)


@pytest.mark.parametrize("row", [row for row in LOCATION if "Required" in row.rules], ids=str)
def test_what_is_required_of_a_location_is_always_there(row: Row) -> None:
    assert row.name in SCHEMAS["LocationShown"]["required"]


def test_keys_and_agents_of_a_location_have_the_fields_of_the_table() -> None:
    rows = {row.name: set(re.findall(r"`(\w+)`", row.rules)) for row in LOCATION}
    key = {
        name
        for part in parts(property_of("NewLocationShown", "keys"))
        for name in part.get("properties", ())
    }
    assert rows["keys"] <= key
    running = SCHEMAS["RunningVersion"]["properties"] | SCHEMAS["RunningAgent"]["properties"]
    assert rows["runningAgents"] <= set(running)
