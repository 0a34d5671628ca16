from typing import Any

import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    SPEC_TYPES,
    ApiSpec,
    CheckSpec,
    CheckType,
    DnsSpec,
    HeartbeatSpec,
    HttpSpec,
    IcmpSpec,
    TcpSpec,
    UrlSpec,
)
from contract.requests import (
    BasicAuth,
    BodyType,
    HttpMethod,
    HttpRequest,
    IpFamily,
    KeyValue,
    RecordType,
)
from contract.wire import decode, encode
from service.checks.resolve import build_doc, build_spec
from service.checks.schemas import CheckWrite
from service.checks.types.api import ApiCheckWrite
from service.checks.types.dns import DnsCheckWrite
from service.checks.types.heartbeat import HeartbeatCheckWrite
from service.checks.types.icmp import IcmpCheckWrite
from service.checks.types.tcp import TcpCheckWrite
from service.checks.types.url import UrlCheckWrite
from tests.builders.check_bodies import LEAST, check_body, with_request

MODELS: dict[str, type[CheckWrite]] = {
    "url": UrlCheckWrite,
    "api": ApiCheckWrite,
    "tcp": TcpCheckWrite,
    "dns": DnsCheckWrite,
    "icmp": IcmpCheckWrite,
    "heartbeat": HeartbeatCheckWrite,
}


def read(kind: str, body: dict[str, Any]) -> CheckWrite:
    return MODELS[kind].model_validate(body)


def spec(check: CheckWrite, *, token: str = "t") -> CheckSpec:
    """Of the check as it is stored."""
    doc = build_doc(check)
    if isinstance(check, HeartbeatCheckWrite):
        doc["heartbeat"]["pingToken"] = token
    return build_spec(doc, check.kind)


@pytest.mark.parametrize("kind", ["url", "api"])
def test_accepted_statuses_and_the_address_to_connect_to_reach_the_spec(kind: str) -> None:
    body = with_request(kind, acceptedStatusCodes=["200-299", 429], connectTo="10.0.0.7:8443")
    found = spec(read(kind, body))
    assert isinstance(found, HttpSpec)
    assert found.request.accepted_status_codes == ("200-299", "429")
    assert found.request.connect_to == "10.0.0.7:8443"
    absent = spec(read(kind, with_request(kind, acceptedStatusCodes=None, connectTo="")))
    assert isinstance(absent, HttpSpec)
    assert (absent.request.accepted_status_codes, absent.request.connect_to) == ((), None)


@pytest.mark.parametrize("kind", LEAST)
def test_the_least_body_becomes_a_spec_of_its_type(kind: str) -> None:
    check = read(kind, check_body(kind))
    found = spec(check)
    assert type(found) is SPEC_TYPES[CheckType(kind.upper())]
    assert check.kind == kind.upper()
    assert decode(encode(found), type(found)) == found


def test_defaults_of_bodies_and_specs_are_the_same() -> None:
    def default(kind: str) -> Any:
        return spec(read(kind, check_body(kind)))

    assert default("url") == UrlSpec(request=HttpRequest(url="http://127.0.0.1/"))
    assert default("api") == ApiSpec(request=HttpRequest(url="https://shop.test/orders"))
    tcp = default("tcp")
    assert tcp == TcpSpec(request=tcp.request)
    dns = default("dns")
    assert dns == DnsSpec(request=dns.request)
    icmp = default("icmp")
    assert icmp == IcmpSpec(request=icmp.request)
    assert icmp.request.ping_count == 10


def test_everything_of_an_api_request_arrives_in_its_spec() -> None:
    body = check_body(
        "api",
        shouldFail=True,
        degradedResponseTime=100,
        maxResponseTime=None,
        request={
            "method": "PATCH",
            "url": "https://a.test/",
            "followRedirects": False,
            "skipSSL": True,
            "ipFamily": "IPv6",
            "body": "{}",
            "bodyType": "GRAPHQL",
            "headers": [{"key": "a", "value": "b", "locked": True}],
            "queryParameters": [{"key": "c", "value": "d"}],
            "basicAuth": {"username": "u", "password": "p"},
            "assertions": [
                {"source": "HEADERS", "comparison": "CONTAINS", "property": "x", "target": "1"}
            ],
        },
    )
    assert spec(read("api", body)) == ApiSpec(
        should_fail=True,
        degraded_after_ms=100,
        failed_after_ms=None,
        request=HttpRequest(
            method=HttpMethod.PATCH,
            url="https://a.test/",
            follow_redirects=False,
            skip_ssl=True,
            ip_family=IpFamily.IPV6,
            body="{}",
            body_type=BodyType.GRAPHQL,
            headers=(KeyValue(key="a", value="b", locked=True),),
            query_parameters=(KeyValue(key="c", value="d"),),
            basic_auth=BasicAuth(username="u", password="p"),
        ),
        assertions=(
            Assertion(
                source=Source.HEADERS,
                comparison=Comparison.CONTAINS,
                property="x",
                target="1",
            ),
        ),
    )


def test_a_dns_question_keeps_its_server() -> None:
    body = with_request("dns", recordType="MX", nameServer="10.0.0.53", port=5353, protocol="TCP")
    found = spec(read("dns", body))
    assert isinstance(found, DnsSpec)
    assert found.request.record_type is RecordType.MX
    assert (found.request.name_server, found.request.port) == ("10.0.0.53", 5353)


def test_a_heartbeat_counts_in_seconds() -> None:
    found = spec(read("heartbeat", check_body("heartbeat")), token="abc")
    assert found == HeartbeatSpec(period_s=86_400, grace_s=1800, ping_token="abc")


def test_null_is_taken_for_empty_as_go_clients_send_it() -> None:
    body = with_request("api", headers=None, queryParameters=None, assertions=None, body=None)
    check = read("api", {**body, "tags": None, "runtimeId": "", "groupId": 0})
    doc = build_doc(check)
    assert doc["request"]["headers"] == doc["tags"] == []
    assert (doc["request"]["body"], doc["runtimeId"], doc["groupId"]) == ("", None, None)
    assert spec(check)


def test_whole_numbers_are_stored_without_a_point() -> None:
    doc = build_doc(read("url", check_body("url", maxResponseTime=4000.0)))
    assert repr(doc["maxResponseTime"]) == "4000"
