"""A refusal holds the value that was sent, and never one that may be a secret."""

from typing import Any

import pytest

from tests.builders.check_bodies import check_body, with_request
from tests.servers.public_api import ApiUser

RETRIES = {"type": "FIXD"}
WEEKS = {"period": 1, "periodUnit": "weeks", "grace": 0, "graceUnit": "days"}
UNFIT = {"source": "STATUS_CODE", "comparison": "IS"}
UNKNOWN = {"source": "STATUS", "comparison": "EQUALS"}


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("api", with_request("api", method="FETCH"), '"request.method" is FETCH; use one of'),
        ("api", with_request("api", method=""), '"request.method" is empty; use one of'),
        ("api", with_request("api", method=["GET"]), '"request.method" is an array; use one of'),
        (
            "api",
            with_request("api", assertions=[UNFIT]),
            '"request.assertions[0].comparison" is IS; use one of',
        ),
        (
            "api",
            with_request("api", assertions=[UNKNOWN]),
            '"request.assertions[0].source" is STATUS; use one of',
        ),
        (
            "api",
            with_request("api", headers="Authorization: hush"),
            '"request.headers" is a text; use an array.',
        ),
        ("dns", with_request("dns", recordType="ANY"), '"request.recordType" is ANY; use one of'),
        (
            "heartbeat",
            check_body("heartbeat", heartbeat=WEEKS),
            '"heartbeat.periodUnit" is weeks; use one of',
        ),
        (
            "api",
            check_body("api", retryStrategy=RETRIES),
            '"retryStrategy.type" is FIXD; use one of',
        ),
        (
            "api",
            check_body("api", activated="true"),
            '"activated" is "true"; use true or false, without quotes.',
        ),
        ("api", check_body("api", activated="hush"), '"activated" is a text; use true or false.'),
        ("api", with_request("api", method='GET"'), '"request.method" is GET"; use one of'),
        ("api", check_body("api", frequency="hush"), '"frequency" is a text; use one of 0, 1, 2'),
        ("api", check_body("api", frequency=7), '"frequency" is 7; use one of 0, 1, 2'),
        (
            "tcp",
            with_request("tcp", port="80"),
            '"request.port" is "80"; use a whole number, without quotes.',
        ),
        ("tcp", with_request("tcp", port="hush"), '"request.port" is a text; use a whole number.'),
        (
            "tcp",
            with_request("tcp", hostname="db.test:5432"),
            (
                '"request.hostname" is db.test:5432, which must not contain a port; '
                "use the field port."
            ),
        ),
        (
            "api",
            check_body("api", privateLocations=["nowhere"]),
            '"privateLocations[0]" is nowhere, and there is no private location of this slug;',
        ),
        (
            "api",
            check_body("api", privateLocations=["pl_hush"]),
            '"privateLocations[0]" is a text, and there is no private location of this slug;',
        ),
        (
            "api",
            check_body("api", locations=["mars-1"]),
            '"locations[0]" is mars-1, which is not a region;',
        ),
        ("api", [], "The body is an array; use a JSON object."),
    ],
)
async def test_a_refusal_of_a_body_holds_the_value(
    alice: ApiUser, kind: str, body: Any, said: str
) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", body)
    assert answer.status == 400
    assert answer.body["message"].startswith(said)
    assert "hush" not in answer.body["message"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/checks?limit=1000", '"limit" is 1000; use at most 100.'),
        ("/v1/checks?limit=pl_hush", '"limit" is a text; use a whole number.'),
        (
            "/v1/check-sessions/x/completion?maxWaitSeconds=300",
            '"maxWaitSeconds" is 300; use at most ',
        ),
        ("/v1/check-results/x?resultType=ALLL", '"resultType" is ALLL; use one of'),
        ("/v1/check-results/x?from=yesterday", '"from" is yesterday; use a time:'),
        ("/v2/check-results/x?fields=id,naem", '"fields" names naem, which no result has; use'),
    ],
)
async def test_a_refusal_of_a_query_holds_the_value(alice: ApiUser, path: str, said: str) -> None:
    answer = await alice.get(path)
    assert answer.status == 400, answer.body
    assert answer.body["message"].startswith(said)
