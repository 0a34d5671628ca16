"""What cannot work is refused by the service and by `picket run`, at the same field."""

import json
import re
from typing import Any

import pytest

from picket.check_file.load import parse
from picket.errors import CommandError
from service.checks.types.api import ApiCheckWrite
from service.checks.types.dns import DnsCheckWrite
from service.checks.types.icmp import IcmpCheckWrite
from service.checks.types.tcp import TcpCheckWrite
from service.checks.types.url import UrlCheckWrite
from service.http.validation import problems_of
from tests.builders.check_bodies import with_request

BODIES = {
    "url": UrlCheckWrite,
    "api": ApiCheckWrite,
    "tcp": TcpCheckWrite,
    "dns": DnsCheckWrite,
    "icmp": IcmpCheckWrite,
}


def refused_by_the_service(kind: str, body: dict[str, Any]) -> list[str]:
    """Paths of the wrong fields."""
    try:
        BODIES[kind].model_validate_json(json.dumps(body))
    except ValueError as problem:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in problem.errors()]  # type: ignore[attr-defined]
        return [one.path for one in problems_of(errors)]
    return []


def refused_by_the_command(kind: str, body: dict[str, Any]) -> list[str]:
    try:
        parse(json.dumps({**body, "type": kind}), "check.json")
    except CommandError as problem:
        return re.findall(r"^check\.json: \$\.([^ ]+) ", problem.message) or [problem.message]
    return []


def asserting(kind: str, source: str, comparison: str, **more: str) -> tuple[str, dict[str, Any]]:
    assertion = {"source": source, "comparison": comparison, **more}
    return kind, with_request(kind, assertions=[assertion])


A = "request.assertions[0]"
_AS_CLIENTS_SEND = {
    "source": "STATUS_CODE",
    "comparison": "EQUALS",
    "property": "",
    "target": "200",
    "regex": None,
}
"""What a client sends that fills in every field."""

WRONG = [
    (("url", with_request("url", url="ftp://a.test")), "request.url"),
    (("url", with_request("url", url="http://a.test:99999/")), "request.url"),
    (("api", with_request("api", url="http:///path")), "request.url"),
    (("api", with_request("api", headers=[{"key": "a", "value": "b\nc"}])), "request.headers[0]"),
    (("tcp", with_request("tcp", hostname="a.test:25")), "request.hostname"),
    (("tcp", with_request("tcp", hostname="http://a.test")), "request.hostname"),
    (("icmp", with_request("icmp", hostname="300.1.2.3")), "request.hostname"),
    (("dns", with_request("dns", query="a..test")), "request.query"),
    (("dns", with_request("dns", nameServer="10.0.0.53:53")), "request.nameServer"),
    (asserting("api", "JSON_BODY", "NOT_NULL", property="$.a["), f"{A}.property"),
    (asserting("api", "JSON_BODY", "NOT_NULL", property="$.."), f"{A}.property"),
    (asserting("api", "JSON_BODY", "NOT_NULL", property="$[?nope(@)]"), f"{A}.property"),
    (asserting("api", "JSON_BODY", "NOT_NULL", property="$.a." + "length["), f"{A}.property"),
    (asserting("dns", "JSON_ANSWER", "NOT_NULL", property="$["), f"{A}.property"),
    (asserting("icmp", "JSON_RESPONSE", "NOT_NULL", property="$["), f"{A}.property"),
    (asserting("api", "TEXT_BODY", "NOT_NULL", property="("), f"{A}.property"),
    (asserting("api", "TEXT_BODY", "NOT_NULL", property="(?<=a)b"), f"{A}.property"),
    (asserting("api", "TEXT_BODY", "NOT_NULL", property="a" * 10_001), f"{A}.property"),
    (asserting("tcp", "RESPONSE_DATA", "NOT_EMPTY", property="[a-"), f"{A}.property"),
    (asserting("dns", "RESPONSE_CODE", "NOT_NULL", property="*"), f"{A}.property"),
    (asserting("api", "HEADERS", "NOT_NULL", property="etag", regex=r"\1"), f"{A}.regex"),
    (asserting("icmp", "LATENCY", "LESS_THAN", property="p99", target="1"), f"{A}.property"),
    (asserting("url", "STATUS_CODE", "CONTAINS", target="2"), f"{A}.comparison"),
    (asserting("tcp", "RESPONSE_DATA", "HAS_KEY", target="2"), f"{A}.comparison"),
    (asserting("api", "TEXT_BODY", "HAS_KEY", target="a"), f"{A}.comparison"),
    (asserting("dns", "RESPONSE_TIME", "HAS_VALUE", target="1"), f"{A}.comparison"),
    (asserting("api", "STATUS_CODE", "EQUALS", target="2xx"), f"{A}.target"),
    (asserting("icmp", "LATENCY", "LESS_THAN", property="avg", target="fast"), f"{A}.target"),
    (asserting("url", "STATUS_CODE", "EQUALS", property="$.a", target="200"), f"{A}.property"),
    (
        ("url", with_request("url", acceptedStatusCodes=["2xx", "20"])),
        "request.acceptedStatusCodes[1]",
    ),
    (("api", with_request("api", connectTo="shop.example")), "request.connectTo"),
    (asserting("dns", "RESPONSE_TIME", "LESS_THAN", property="a", target="9"), f"{A}.property"),
    (asserting("api", "JSON_BODY", "EQUALS", property="$", regex="(.)", target="a"), f"{A}.regex"),
    (asserting("api", "TEXT_BODY", "EQUALS", regex="(.)", target="a"), f"{A}.regex"),
    (asserting("tcp", "RESPONSE_DATA", "NOT_EMPTY", target="a"), f"{A}.target"),
]

RIGHT = [
    ("url", with_request("url", url="{{BASE}}/x")),
    ("url", with_request("url", url="https://{{HOST}}:{{PORT}}/")),
    ("tcp", with_request("tcp", hostname="{{HOST}}")),
    ("dns", with_request("dns", query="{{ZONE}}", nameServer="{{SERVER}}")),
    ("dns", with_request("dns", nameServer="::1")),
    asserting("api", "JSON_BODY", "NOT_NULL", property="$.{{NAME}}["),
    asserting("api", "TEXT_BODY", "NOT_NULL", property="({{NAME}}"),
    asserting("api", "STATUS_CODE", "EQUALS", target="{{STATUS}}"),
    asserting("api", "JSON_BODY", "GREATER_THAN", property="$.items.length", target="3"),
    asserting("api", "JSON_BODY", "GREATER_THAN", property="$..length", target="3"),
    asserting("api", "JSON_BODY", "NOT_NULL", property="$[?match(@.a, 'x.*')]"),
    asserting("api", "JSON_BODY", "HAS_KEY", property="$", target="id"),
    asserting("api", "HEADERS", "EQUALS", property="etag", regex="(.)", target="1"),
    asserting("tcp", "RESPONSE_DATA", "LESS_THAN", property=r"load (\d+)", target="3"),
    asserting("url", "STATUS_CODE", "EQUALS", property="", target="200", regex=""),
    asserting("api", "JSON_BODY", "NOT_EMPTY", property="$.title", target="", regex=""),
    ("api", with_request("api", assertions=[_AS_CLIENTS_SEND])),
    ("url", with_request("url", acceptedStatusCodes=["200-299", "4XX", 429], connectTo="10.0.0.7")),
    ("url", with_request("url", acceptedStatusCodes=[], connectTo="127.0.0.1:8443")),
]


@pytest.mark.parametrize(("given", "field"), WRONG)
def test_what_cannot_work_is_refused_by_both_at_the_same_field(
    given: tuple[str, dict[str, Any]], field: str
) -> None:
    assert refused_by_the_service(*given) == [field]
    assert refused_by_the_command(*given) == [field]


@pytest.mark.parametrize("given", RIGHT)
def test_what_may_work_is_taken_by_both(given: tuple[str, dict[str, Any]]) -> None:
    assert refused_by_the_service(*given) == []
    assert refused_by_the_command(*given) == []
