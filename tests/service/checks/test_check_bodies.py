from typing import Any

import pytest
from pydantic import ValidationError

from service.checks.schemas import CheckWrite
from service.checks.types.api import ApiCheckWrite
from service.checks.types.dns import DnsCheckWrite
from service.checks.types.heartbeat import HeartbeatCheckWrite
from service.checks.types.icmp import IcmpCheckWrite
from service.checks.types.tcp import TcpCheckWrite
from service.checks.types.url import UrlCheckWrite
from service.http.validation import Problem, problems_of
from tests.builders.check_bodies import LEAST, check_body, with_request

MODELS: dict[str, type[CheckWrite]] = {
    "url": UrlCheckWrite,
    "api": ApiCheckWrite,
    "tcp": TcpCheckWrite,
    "dns": DnsCheckWrite,
    "icmp": IcmpCheckWrite,
    "heartbeat": HeartbeatCheckWrite,
}


def problems_of_body(kind: str, body: dict[str, Any]) -> tuple[Problem, ...]:
    """What the API says of a body, found as FastAPI finds it."""
    try:
        MODELS[kind].model_validate(body)
    except ValidationError as problem:
        errors = problem.errors()
        return problems_of([{**error, "loc": ("body", *error["loc"])} for error in errors])
    return ()


@pytest.mark.parametrize(
    ("kind", "body", "keys"),
    [
        ("url", {"request": {"url": "http://a"}}, ["name"]),
        ("url", {"name": "x"}, ["request"]),
        ("url", check_body("url", name=""), ["name"]),
        ("url", check_body("url", name="a\0b"), ["name"]),
        ("url", check_body("url", name=7), ["name"]),
        ("url", check_body("url", activated="yes"), ["activated"]),
        ("url", check_body("url", activated=None), ["activated"]),
        ("url", check_body("url", frequency=3), ["frequency"]),
        ("url", check_body("url", frequency=False), ["frequency"]),
        ("url", check_body("url", frequency="10"), ["frequency"]),
        ("url", check_body("url", frequency=0, frequencyOffset=10), ["frequency"]),
        ("tcp", check_body("tcp", frequency=0), ["frequencyOffset"]),
        ("url", check_body("url", frequency=5, frequencyOffset=51), ["frequencyOffset"]),
        ("url", check_body("url", frequencyOffset=0), ["frequencyOffset"]),
        ("url", check_body("url", description="x" * 501), ["description"]),
        ("url", check_body("url", locations=["mars-1"]), ["locations[0]"]),
        ("url", check_body("url", maxResponseTime=30_001), ["maxResponseTime"]),
        ("url", check_body("url", maxResponseTime=False), ["maxResponseTime"]),
        ("url", check_body("url", degradedResponseTime=-1), ["degradedResponseTime"]),
        (
            "url",
            check_body("url", degradedResponseTime=9000, maxResponseTime=8000),
            ["degradedResponseTime"],
        ),
        (
            "icmp",
            check_body("icmp", degradedPacketLossThreshold=30, maxPacketLossThreshold=20),
            ["degradedPacketLossThreshold"],
        ),
        ("url", check_body("url", groupOrder=-1), ["groupOrder"]),
        ("url", check_body("url", groupId="12"), ["groupId"]),
        ("url", check_body("url", runtimeId="1999.01"), ["runtimeId"]),
        (
            "url",
            check_body("url", retryStrategy={"type": "FIXED", "onlyOn": "RAIN"}),
            ["retryStrategy.onlyOn"],
        ),
        (
            "url",
            check_body("url", retryStrategy={"type": "FIXED", "maxRetries": 11}),
            ["retryStrategy.maxRetries"],
        ),
        ("url", with_request("url", url="http://a/" + "x" * 2048), ["request.url"]),
        ("url", with_request("url", url="ftp://a"), ["request.url"]),
        ("url", with_request("url", method="POST"), ["request.method"]),
        (
            "url",
            with_request("url", assertions=[{"source": "JSON_BODY", "comparison": "EQUALS"}]),
            ["request.assertions[0].source"],
        ),
        (
            "url",
            with_request("url", assertions=[{"source": "STATUS_CODE", "comparison": "CONTAINS"}]),
            ["request.assertions[0].comparison"],
        ),
        ("api", with_request("api", method="TRACE"), ["request.method"]),
        ("api", with_request("api", connectTo="::1"), ["request.connectTo"]),
        (
            "url",
            with_request("url", acceptedStatusCodes=["2xx", True]),
            ["request.acceptedStatusCodes[1]"],
        ),
        (
            "api",
            with_request("api", headers=[{"key": "a", "value": "b\r\nc: d"}]),
            ["request.headers[0]"],
        ),
        (
            "api",
            with_request(
                "api",
                assertions=[
                    {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"},
                    {"source": "JSON_BODY", "comparison": "EQUALS", "property": "a.b"},
                ],
            ),
            ["request.assertions[1].property"],
        ),
        ("url", check_body("url", localSetupScript="1"), ["localSetupScript"]),
        ("api", check_body("api", localSetupScript=" "), ["localSetupScript"]),
        ("api", check_body("api", localTearDownScript="x" * 524_289), ["localTearDownScript"]),
        ("api", check_body("api", setupSnippetId=1, localSetupScript="1"), ["setupSnippetId"]),
        (
            "api",
            check_body("api", tearDownSnippetId=1, localTearDownScript="1"),
            ["tearDownSnippetId"],
        ),
        (
            "api",
            check_body("api", runtimeId="2022.10", localSetupScript="1"),
            ["runtimeId"],
        ),
        ("tcp", with_request("tcp", port=0), ["request.port"]),
        ("tcp", with_request("tcp", hostname="a.test:25"), ["request.hostname"]),
        ("tcp", check_body("tcp", maxResponseTime=5001), ["maxResponseTime"]),
        ("dns", with_request("dns", recordType="Z"), ["request.recordType"]),
        ("dns", with_request("dns", port=53), ["request.port"]),
        ("dns", with_request("dns", query="x" * 254), ["request.query"]),
        ("icmp", with_request("icmp", pingCount=51), ["request.pingCount"]),
        (
            "icmp",
            check_body("icmp", degradedPacketLossThreshold=101),
            ["degradedPacketLossThreshold"],
        ),
        (
            "icmp",
            with_request("icmp", assertions=[{"source": "LATENCY", "comparison": "LESS_THAN"}]),
            ["request.assertions[0].property"],
        ),
        (
            "heartbeat",
            check_body(
                "heartbeat",
                heartbeat={
                    "period": 29,
                    "periodUnit": "seconds",
                    "grace": 0,
                    "graceUnit": "days",
                },
            ),
            ["heartbeat.period"],
        ),
        (
            "heartbeat",
            check_body(
                "heartbeat",
                heartbeat={
                    "period": 1,
                    "periodUnit": "weeks",
                    "grace": 366,
                    "graceUnit": "days",
                },
            ),
            ["heartbeat.periodUnit"],
        ),
    ],
)
def test_a_wrong_field_is_named_by_its_path(
    kind: str, body: dict[str, Any], keys: list[str]
) -> None:
    problems = problems_of_body(kind, body)
    assert [problem.path for problem in problems] == keys
    assert f'"{keys[0]}"' in problems[0].sentence
    assert {problem.source for problem in problems} == {"payload"}


@pytest.mark.parametrize(
    ("period", "unit", "sentence"),
    [
        (-1, "hours", '"heartbeat.period" is -1; use more than 0.'),
        (29, "seconds", '"heartbeat.period" comes to 29 seconds; use 30 seconds to 365 days.'),
        (366, "days", '"heartbeat.period" comes to 31622400 seconds; use 30 seconds to 365 days.'),
    ],
)
def test_a_period_that_cannot_be_is_told(period: int, unit: str, sentence: str) -> None:
    times = {"period": period, "periodUnit": unit, "grace": 0, "graceUnit": "days"}
    problems = problems_of_body("heartbeat", check_body("heartbeat", heartbeat=times))
    assert [problem.sentence for problem in problems] == [sentence]


def test_a_header_that_no_request_can_have_is_refused() -> None:
    body = with_request("api", headers=[{"key": "Authorization: Bearer hush", "value": "b"}])
    sentences = [problem.sentence for problem in problems_of_body("api", body)]
    start = '"request.headers[0]" is called Authorization…;'
    assert sentences == [f"{start} header names may not contain white space or a colon."]


def test_a_good_body_has_no_problem() -> None:
    assert all(problems_of_body(kind, check_body(kind)) == () for kind in LEAST)


def pattern(letters: int) -> dict[str, Any]:
    body = {"source": "JSON_BODY", "comparison": "EQUALS", "target": "1"}
    return {"assertions": [{**body, "property": "$." + "a" * (letters - 2)}]}


@pytest.mark.parametrize(
    ("most", "one_more", "key"),
    [
        ({"name": "n" * 1000}, {"name": "n" * 1001}, "name"),
        ({"tags": ["t" * 250] * 500}, {"tags": ["t"] * 501}, "tags"),
        ({"tags": []}, {"tags": ["t" * 251]}, "tags[0]"),
        (
            {"alertChannelSubscriptions": [{"alertChannelId": 1}] * 500},
            {"alertChannelSubscriptions": [{"alertChannelId": 1}] * 501},
            "alertChannelSubscriptions",
        ),
        (
            with_request("api", headers=[{"key": "a"}] * 500),
            with_request("api", headers=[{"key": "a"}] * 501),
            "request.headers",
        ),
        (
            with_request("api", **pattern(10_000)),
            with_request("api", **pattern(10_001)),
            "request.assertions[0].property",
        ),
    ],
)
def test_what_is_judged_piece_by_piece_has_an_end(
    most: dict[str, Any], one_more: dict[str, Any], key: str
) -> None:
    assert problems_of_body("api", {**check_body("api"), **most}) == ()
    assert [one.path for one in problems_of_body("api", {**check_body("api"), **one_more})] == [key]


@pytest.mark.parametrize(
    "fields",
    [
        {"maxResponseTime": 1000},
        {"degradedResponseTime": 5000, "maxResponseTime": 1000},
        {"degradedResponseTime": 15_000, "maxResponseTime": 10_000},
        {"degradedResponseTime": 9000, "maxResponseTime": None},
        {"degradedResponseTime": 9000, "maxResponseTime": 9000},
        {"degradedResponseTime": 25_000},
    ],
    ids=["left out", "sent back", "sent by Terraform", "no limit", "equal", "limit left out"],
)
def test_a_threshold_that_nobody_chose_fits_whatever_the_limit(fields: dict[str, Any]) -> None:
    assert problems_of_body("api", check_body("api", **fields)) == ()


def test_a_threshold_above_the_limit_is_told_with_the_limit() -> None:
    body = check_body("api", degradedResponseTime=9000, maxResponseTime=8000)
    [found] = problems_of_body("api", body)
    assert found.sentence == (
        '"degradedResponseTime" is 9000, more than maxResponseTime; use at most 8000.'
    )


@pytest.mark.parametrize("field", ["period", "grace"])
def test_a_time_that_no_number_of_seconds_holds_is_told_in_words(field: str) -> None:
    pings = {"period": 1, "periodUnit": "days", "grace": 1, "graceUnit": "days", field: 1.7e308}
    [found] = problems_of_body("heartbeat", check_body("heartbeat", heartbeat=pings))
    assert f'"heartbeat.{field}" comes to more than 1e+308 seconds; use' in found.sentence
