"""Every operation of the specification stands in the document, with what it takes and answers.

`OPERATIONS` is the specification's section "Endpoints", transcribed with the resources that it
names. Fields beyond it are ours, and are no fault.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from service.routers import document

DOCUMENT: Final = document()
SCHEMAS: Final[Mapping[str, Any]] = DOCUMENT["components"]["schemas"]

CHECK_TYPES: Final = (
    *("AGENTIC", "API", "BROWSER", "HEARTBEAT", "ICMP", "MULTI_STEP", "TCP", "PLAYWRIGHT"),
    *("URL", "DNS"),
)
SESSION_TYPES: Final = tuple(one for one in CHECK_TYPES if one != "HEARTBEAT")
CHANNEL_TYPES: Final = ("EMAIL", "SLACK", "WEBHOOK", "SMS", "PAGERDUTY", "OPSGENIE", "CALL")
ALERT_TYPES: Final = (
    *("NO_ALERT", "ALERT_FAILURE", "ALERT_FAILURE_REMAIN", "ALERT_FAILURE_DEGRADED"),
    *("ALERT_RECOVERY", "ALERT_DEGRADED", "ALERT_DEGRADED_REMAIN", "ALERT_DEGRADED_FAILURE"),
    *("ALERT_DEGRADED_RECOVERY", "ALERT_SSL"),
)
UPDATE_STATUSES: Final = ("INVESTIGATING", "IDENTIFIED", "MONITORING", "RESOLVED")
SUFFIXES: Final = (*("avg", "max", "median", "min", "p50", "p90", "p95", "p99", "stddev", "sum"),)
URL_BASES: Final = ("responseTime", "wait", "dns", "tcp", "firstByte", "download")
BROWSER_BASES: Final = (
    *("responseTime", "TTFB", "FCP", "LCP", "CLS", "TBT"),
    *("consoleErrors", "networkErrors", "userScriptErrors", "documentErrors"),
)
WITHOUT_SUFFIX: Final = ("availability", "retries")
QUICK_RANGES: Final = (
    *("last24Hours", "last7Days", "last30Days", "thisWeek", "thisMonth", "lastWeek", "lastMonth"),
)
SUMMARY_RANGES: Final = ("last24Hours", "last7Days", "thisWeek", "lastWeek", "lastMonth")


def with_suffixes(bases: tuple[str, ...]) -> tuple[str, ...]:
    return (*bases, *WITHOUT_SUFFIX, *(f"{base}_{one}" for base in bases for one in SUFFIXES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query parameter."""

    default: Any = None
    least: int | None = None
    most: int | None = None
    values: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The fields of a request's body."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The fields of a success response, or of the items of its list."""

    status: int = 200
    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields of the objects in a field; a dot leads further down."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


LIMIT: Final = Query(default=10, least=1, most=100)
CURSOR_LIMIT: Final = Query(default=20, least=1, most=100)
PAGE: Final = Query(default=1)
SERIES_QUERY: Final = {
    "from": Query(),
    "to": Query(),
    "quickRange": Query(default="last24Hours", values=QUICK_RANGES),
    "aggregationInterval": Query(least=1, most=43_200),
    "filterByStatus": Query(values=("success", "failure")),
    "limit": LIMIT,
    "page": PAGE,
}
SERIES: Final = Answer(
    fields=(
        *("checkId", "name", "checkType", "activated", "muted", "frequency", "from", "to"),
        *("tags", "series", "pagination", "metadata"),
    ),
    inner={"pagination": ("page", "limit"), "metadata": ("unit", "label", "aggregation")},
)
SERVICE: Final = ("name", "id", "accountId", "created_at", "updated_at")
COLOURS: Final = (
    *("bodyBackgroundColor", "headerBackgroundColor", "headerFontColor", "titleFontColor"),
    *("bodyFontColor", "bodyFontColorMuted", "navigationFontColor", "linkFontColor"),
    *("cardBackgroundColor", "borderColor"),
    *("primaryButtonBackgroundColor", "primaryButtonFontColor"),
)
UPDATE: Final = (
    *("id", "description", "status", "publicIncidentUpdateDate", "created_at"),
    "notifySubscribers",
)
CHANNEL_BODY: Final = (
    *("type", "config", "subscriptions", "sendRecovery", "sendFailure", "sendDegraded"),
    *("sslExpiry", "sslExpiryThreshold", "autoSubscribe"),
)
SESSION: Final = (
    *("checkSessionId", "checkSessionLink", "checkId", "checkType", "status", "startedAt"),
    *("stoppedAt", "timeElapsed", "runLocations", "name"),
)
SESSION_VALUES: Final = {
    "checkType": SESSION_TYPES,
    "status": ("FAILED", "PASSED", "DEGRADED", "TIMED_OUT"),
}
ERROR_GROUP: Final = (
    *("id", "checkId", "errorHash", "rawErrorMessage", "cleanedErrorMessage", "firstSeen"),
    *("lastSeen", "archivedUntilNextEvent"),
)
ERROR_GROUP_ANSWER: Final = Answer(fields=(*ERROR_GROUP, "rootCauseAnalyses"), required=ERROR_GROUP)
API_CHECK: Final = (
    *("name", "request", "activated", "muted", "doubleCheck", "shouldFail", "locations"),
    *("privateLocations", "tags", "alertSettings", "useGlobalAlertSettings", "groupId"),
    *("groupOrder", "runtimeId", "alertChannelSubscriptions", "retryStrategy", "triggerIncident"),
    *("runParallel", "description", "frequency", "frequencyOffset", "degradedResponseTime"),
    *("maxResponseTime", "tearDownSnippetId", "setupSnippetId", "localSetupScript"),
    "localTearDownScript",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the specification."""

    query: Mapping[str, Query] = field(default_factory=dict)
    body: Body | None = None
    answer: Answer


OPERATIONS: Final[Mapping[str, Operation]] = {
    "PUT /v1/alert-channels/{id}": Operation(
        body=Body(
            required=("type", "config"),
            optional=CHANNEL_BODY[2:],
            values={"type": CHANNEL_TYPES},
            defaults={"sslExpiry": False, "sslExpiryThreshold": 30, "autoSubscribe": False},
            ranges={"sslExpiryThreshold": (1, 30)},
        ),
        answer=Answer(
            fields=(*CHANNEL_BODY, "id", "created_at", "updated_at"),
            required=("id", "type", "config"),
            values={"type": CHANNEL_TYPES},
        ),
    ),
    "POST /v1/checks/api": Operation(
        query={"autoAssignAlerts": Query(default=True)},
        body=Body(required=API_CHECK[:2], optional=API_CHECK[2:]),
        answer=Answer(
            status=201,
            fields=(*API_CHECK, "id", "created_at", "updated_at", "alertChannels", "checkType"),
        ),
    ),
    "GET /v1/analytics/url-monitors/{id}": Operation(
        query={
            **SERIES_QUERY,
            "groupBy": Query(values=("runLocation", "statusCode")),
            "metrics": Query(required=True, values=with_suffixes(URL_BASES)),
        },
        answer=SERIES,
    ),
    "GET /v1/analytics/browser-checks/{id}": Operation(
        query={
            **SERIES_QUERY,
            "groupBy": Query(values=("runLocation", "pageIndex")),
            "metrics": Query(required=True, values=with_suffixes(BROWSER_BASES)),
        },
        answer=SERIES,
    ),
    "POST /v1/analytics/checks": Operation(
        query={"quickRange": Query(default="last24Hours", values=SUMMARY_RANGES)},
        body=Body(required=("checkIds",), ranges={"checkIds": (1, 100)}),
        answer=Answer(
            fields=(
                *("checkId", "checkType", "availability"),
                *(f"responseTime_{one}" for one in ("avg", "p50", "p95", "p99")),
                *(f"latency_{one}" for one in ("avg", "p50", "p95", "p99")),
                *(f"packetLoss_{one}" for one in ("avg", "p95", "p99")),
            ),
            required=("checkId", "checkType"),
            values={"checkType": CHECK_TYPES},
        ),
    ),
    "GET /v1/check-alerts": Operation(
        query={"limit": LIMIT, "page": PAGE, "from": Query(), "to": Query()},
        answer=Answer(
            fields=(
                *("name", "id", "checkId", "alertType", "checkType", "runLocation"),
                *("responseTime", "error", "statusCode", "created_at", "startedAt"),
            ),
            required=("name",),
            values={"alertType": ALERT_TYPES, "checkType": CHECK_TYPES},
        ),
    ),
    "POST /v1/check-sessions/trigger": Operation(
        body=Body(optional=("target", "refreshCache"), defaults={"refreshCache": False}),
        answer=Answer(
            status=201,
            fields=("sessions",),
            inner={"sessions": SESSION},
            values={f"sessions.{name}": values for name, values in SESSION_VALUES.items()},
        ),
    ),
    "GET /v1/check-sessions/{checkSessionId}": Operation(
        answer=Answer(fields=(*SESSION, "results"), values=SESSION_VALUES)
    ),
    "GET /v1/check-sessions/{checkSessionId}/completion": Operation(
        query={"maxWaitSeconds": Query(default=30, least=1, most=30)},
        answer=Answer(fields=(*SESSION, "results"), values=SESSION_VALUES),
    ),
    "POST /v1/triggers/check-groups/{groupId}": Operation(
        answer=Answer(
            status=201,
            fields=("id", "token", "created_at", "groupId", "called_at", "updated_at"),
            required=("id", "token", "created_at", "groupId"),
        )
    ),
    "GET /v1/snippets": Operation(
        query={"limit": LIMIT, "page": PAGE},
        answer=Answer(fields=("id", "name", "script", "created_at", "updated_at")),
    ),
    "GET /v1/private-locations": Operation(
        query={"versions": Query(default=False)},
        answer=Answer(
            fields=(
                *("id", "name", "slugName", "created_at", "icon", "updated_at", "keys"),
                *("proxyUrl", "lastSeen", "agentCount", "minAgentVersion", "runningAgents"),
            ),
            required=("id", "name", "slugName", "created_at"),
            inner={
                # rawKey is told once, where a key is made: the service keeps its hash alone.
                "keys": ("id", "maskedKey", "created_at", "updated_at"),
                "runningAgents": ("version", "count", "agents"),
                "runningAgents.agents": ("id", "lastSeenAt"),
            },
        ),
    ),
    "DELETE /v1/client-certificates/{id}": Operation(answer=Answer(status=204)),
    "GET /v1/static-ipv6s.txt": Operation(answer=Answer()),
    "GET /v1/status-pages": Operation(
        query={"limit": CURSOR_LIMIT, "nextId": Query()},
        answer=Answer(
            fields=("length", "entries", "nextId"),
            required=("length", "entries"),
            inner={
                "entries": (
                    *("id", "accountId", "name", "url", "description", "customDomain", "logo"),
                    *("redirectTo", "favicon", "created_at", "updated_at", "defaultTheme"),
                    *("themeColors", "cards", "incidents", "isPrivate", "keys"),
                ),
                "entries.themeColors": ("light", "dark"),
                "entries.themeColors.light": COLOURS,
                "entries.themeColors.dark": COLOURS,
                "entries.cards": ("id", "name", "created_at", "updated_at", "services"),
                "entries.cards.services": SERVICE,
                "entries.keys": ("id", "maskedKey", "created_at", "updated_at"),
            },
        ),
    ),
    "GET /v1/status-pages/incidents": Operation(
        query={"limit": CURSOR_LIMIT, "nextId": Query()},
        answer=Answer(
            fields=("length", "entries", "nextId"),
            required=("length", "entries"),
            inner={
                "entries": (
                    *("name", "severity", "id", "services", "incidentUpdates"),
                    *("lastUpdateStatus", "created_at", "updated_at", "duration"),
                ),
                "entries.services": SERVICE,
                "entries.incidentUpdates": UPDATE,
            },
            values={"entries.lastUpdateStatus": UPDATE_STATUSES},
        ),
    ),
    "GET /v1/status-pages/incidents/{incidentId}/incident-updates": Operation(
        answer=Answer(fields=UPDATE, required=("description",), values={"status": UPDATE_STATUSES})
    ),
    "DELETE /v1/status-pages/incidents/{incidentId}/incident-updates/{incidentUpdateId}": Operation(
        answer=Answer(status=204)
    ),
    "GET /v1/status-pages/services/{serviceId}": Operation(
        answer=Answer(fields=SERVICE, required=SERVICE[:4])
    ),
    "GET /v1/error-groups/{id}": Operation(answer=ERROR_GROUP_ANSWER),
    "PATCH /v1/error-groups/{id}": Operation(
        body=Body(optional=("archiveForEver", "archivedUntilNextEvent")),
        answer=ERROR_GROUP_ANSWER,
    ),
}
QUERIES: Final = [(name, one) for name, operation in OPERATIONS.items() for one in operation.query]
BODIES: Final = [name for name, operation in OPERATIONS.items() if operation.body]


def operation_of(name: str) -> Mapping[str, Any]:
    """An operation of the document, by method and path."""
    method, path = name.split()
    found: Mapping[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema in the place of a reference to it."""
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema, what it is a choice of, and the items or values that it holds."""
    own = resolved(schema)
    yield own
    held = (own.get("items"), own.get("additionalProperties"))
    choices = (*own.get("anyOf", ()), *own.get("oneOf", ()), *own.get("allOf", ()))
    for one in (*choices, *(one for one in held if isinstance(one, Mapping))):
        yield from parts(one)


def fields_of(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The fields of the objects that a schema holds; one of several is a choice of them all."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts(schema):
        for name, one in part.get("properties", {}).items():
            found.setdefault(name, []).append(one)
    return {name: {**ones[0], "anyOf": ones} for name, ones in found.items()}


def field_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The schema of a field; dots lead down."""
    for name in path.split("."):
        schema = fields_of(schema)[name]
    return schema


def limits_of(schema: Mapping[str, Any], *names: str) -> set[Any]:
    """What limits of these names say anywhere in a schema."""
    return {part[name] for part in parts(schema) for name in names if name in part}


def values_of(schema: Mapping[str, Any]) -> set[Any]:
    """The values that a schema allows."""
    found = {one for part in parts(schema) for one in part.get("enum", ())}
    return found | {part["const"] for part in parts(schema) if "const" in part}


def required_of(schema: Mapping[str, Any]) -> set[str]:
    return {name for part in parts(schema) for name in part.get("required", ())}


def body_of(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = operation_of(name)["requestBody"]["content"]["application/json"]
    return found["schema"]  # type: ignore[no-any-return]


def answer_of(name: str) -> Mapping[str, Any]:
    status = str(OPERATIONS[name].answer.status)
    found: Mapping[str, Any] = operation_of(name)["responses"][status]
    return found["content"]["application/json"]["schema"]  # type: ignore[no-any-return]


def test_the_table_has_each_operation_of_the_specification() -> None:
    """It names 20; reading a session is said to answer as waiting for it does."""
    assert len(OPERATIONS) == 21


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_there_and_succeeds_as_it_should(name: str) -> None:
    successes = {status for status in operation_of(name)["responses"] if status < "300"}
    assert successes == {str(OPERATIONS[name].answer.status)}


@pytest.mark.parametrize(("name", "parameter"), QUERIES)
def test_each_query_parameter_has_its_default_its_range_and_its_values(
    name: str, parameter: str
) -> None:
    wanted = OPERATIONS[name].query[parameter]
    (found,) = [one for one in operation_of(name)["parameters"] if one["name"] == parameter]
    assert found["in"] == "query"
    assert found.get("required", False) == wanted.required
    schema = found["schema"]
    if wanted.default is not None:
        assert resolved(schema).get("default", schema.get("default")) == wanted.default
    if wanted.least is not None:
        assert limits_of(schema, "minimum") == {wanted.least}
    if wanted.most is not None:
        assert limits_of(schema, "maximum") == {wanted.most}
    if wanted.values:
        assert values_of(schema) == set(wanted.values)


@pytest.mark.parametrize("name", BODIES)
def test_each_field_of_a_body_is_there_and_required_only_if_it_should_be(name: str) -> None:
    wanted, schema = OPERATIONS[name].body, body_of(name)
    assert wanted is not None
    fields = fields_of(schema)
    assert {*wanted.required, *wanted.optional} <= fields.keys()
    required = {
        one for part in (schema, *parts(schema)) for one in resolved(part).get("required", ())
    }
    assert set(wanted.required) <= required
    assert not set(wanted.optional) & set(resolved(schema).get("required", ()))
    for one, values in wanted.values.items():
        assert values_of(fields[one]) >= set(values)
    for one, default in wanted.defaults.items():
        assert fields[one]["default"] == default
    for one, (least, most) in wanted.ranges.items():
        assert limits_of(fields[one], "minimum", "minItems") == {least}
        assert limits_of(fields[one], "maximum", "maxItems") == {most}


@pytest.mark.parametrize("name", [one for one in OPERATIONS if OPERATIONS[one].answer.fields])
def test_each_field_of_an_answer_is_there(name: str) -> None:
    wanted, schema = OPERATIONS[name].answer, answer_of(name)
    assert set(wanted.fields) <= fields_of(schema).keys()
    assert set(wanted.required) <= required_of(schema)
    for path, names in wanted.inner.items():
        assert set(names) <= fields_of(field_at(schema, path)).keys(), path
    for path, values in wanted.values.items():
        assert values_of(field_at(schema, path)) >= set(values), path


def test_addresses_are_plain_text_and_may_be_refused_as_too_many() -> None:
    responses = operation_of("GET /v1/static-ipv6s.txt")["responses"]
    assert "text/plain" in responses["200"]["content"]
    assert "429" in responses


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if name != "GET /v1/static-ipv6s.txt"]
)
def test_each_operation_takes_the_key_and_the_account(name: str) -> None:
    operation = operation_of(name)
    assert operation["security"]
    assert "401" in operation["responses"]
