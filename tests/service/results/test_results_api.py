from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, text

from contract.assertions import AssertionResult, Comparison, Source
from contract.evidence import Hop, HttpEvidence, SeenResponse, SentRequest
from contract.result import (
    DnsEvidence,
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    LogLine,
    Outcome,
    Status,
    TcpEvidence,
    Timings,
)
from service.results.model import ResultType
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import START_MS, passed, store
from tests.servers.public_api import ApiUser, PublicApi

HTTP = HttpEvidence(
    request=SentRequest(
        method="GET", url="http://a.test/x?b=1&c=", headers={"accept": "*/*"}, body="hi"
    ),
    response=SeenResponse(
        status_code=200,
        status_text="OK",
        http_version="1.1",
        headers={"content-type": "text/plain"},
        body="hello",
        body_bytes=5,
    ),
    hops=(Hop(url="http://a.test/final", status_code=200),),
    remote_address="10.0.0.1",
)
NOBODY = (
    "No agent that runs API checks is connected at the location default: start one with its key, "
    "or see on the page of the location why its agents cannot run them."
)
TIMINGS = Timings(wait=1, dns=2, tcp=4, tls=8, first_byte=16, download=32, total=63)


async def a_check(user: ApiUser, kind: str = "api", **fields: Any) -> dict[str, Any]:
    check: dict[str, Any] = (await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))).body
    return check


async def only_result(user: ApiUser, check: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/check-results/{check['id']}"
    (listed,) = (await user.get(path)).body
    read = await user.get(f"{path}/{listed['id']}")
    assert read.status == 200
    assert read.body == listed
    return dict(listed)


async def test_a_result_of_an_api_check_has_the_known_shape(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    held = AssertionResult(
        source=Source.STATUS_CODE,
        comparison=Comparison.EQUALS,
        target="200",
        order=0,
        actual="200",
    )
    outcome = passed(
        1234.9,
        timings=TIMINGS,
        evidence=HTTP,
        assertions=(held,),
        log=(LogLine(after_ms=3, level="INFO", message="sent"),),
    )
    run_id = await store(api, check, outcome)
    seen = await only_result(alice, check)
    plain = {
        "name": "Orders",
        "checkId": check["id"],
        "checkType": "API",
        "checkRunId": run_id,
        "runLocation": "default",
        "resultType": "FINAL",
        "attempts": 1,
        "status": "PASSED",
        "hasFailures": False,
        "hasErrors": False,
        "isDegraded": False,
        "degradedBecause": None,
        "overMaxResponseTime": False,
        "responseTime": 1234,
        "error": None,
        "failure": None,
        "cause": None,
        "browserCheckResult": None,
        "urlCheckResult": None,
    }
    assert plain.items() <= seen.items()
    assert seen["startedAt"] == "2026-09-21T14:13:20.000Z"
    assert seen["stoppedAt"] == "2026-09-21T14:13:20.250Z"
    http = seen["apiCheckResult"]
    assert http["request"] == {
        "method": "GET",
        "url": "http://a.test/x?b=1&c=",
        "data": "hi",
        "headers": {"accept": "*/*"},
        "params": {"b": "1", "c": ""},
    }
    assert http["response"]["status"] == 200
    assert http["response"]["href"] == "http://a.test/final"
    assert http["requestError"] is None
    assert http["assertions"][0]["actual"] == "200"
    assert http["assertions"][0]["error"] is None
    assert http["jobLog"]["request"] == [{"time": START_MS + 3, "msg": "sent", "level": "INFO"}]


async def test_phases_add_up_as_clients_add_them(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check, passed(timings=TIMINGS, evidence=HTTP))
    response = (await only_result(alice, check))["apiCheckResult"]["response"]
    phases, offsets = response["timingPhases"], response["timings"]
    assert phases["tls"] == 8
    named = ("wait", "dns", "tcp", "firstByte", "download")
    assert sum(phases[name] for name in named) == phases["total"] == 63
    assert offsets == {"socket": 1, "lookup": 3, "connect": 7, "response": 31, "end": 63}


async def test_a_failure_says_why(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    failure = Failure(kind=FailureKind.CONNECT, message="127.0.0.1:9 refused.", detail={"port": 9})
    sent = HttpEvidence(request=HTTP.request)
    await store(api, check, Outcome(status=Status.FAILED, failure=failure, evidence=sent))
    seen = await only_result(alice, check)
    assert (seen["hasFailures"], seen["hasErrors"]) == (True, False)
    assert seen["error"] == "127.0.0.1:9 refused."
    assert seen["failure"] == {
        "kind": "CONNECT",
        "message": "127.0.0.1:9 refused.",
        "detail": {"port": 9},
    }
    assert seen["responseTime"] is None
    assert seen["apiCheckResult"]["response"] == {}
    assert seen["apiCheckResult"]["requestError"] == "127.0.0.1:9 refused."


async def test_a_run_that_nobody_did_is_seen_with_its_cause(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check)
    seen = await only_result(alice, check)
    assert (seen["status"], seen["cause"]) == ("MISSED", "no_agent")
    assert (seen["hasFailures"], seen["hasErrors"]) == (False, True)
    assert seen["error"] == NOBODY
    assert seen["apiCheckResult"] is None


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [
        ("tcp", TcpEvidence(hostname="a", port=1, response="220 hi")),
        (
            "dns",
            DnsEvidence(query="a", record_type="A", name_server="1.1.1.1:53", protocol="UDP"),
        ),
        ("icmp", IcmpEvidence(hostname="a", ip_family="IPv4", latency={"avg": 1.5})),
        ("heartbeat", HeartbeatEvidence(silent_for_s=5, period_s=60, grace_s=0)),
        ("url", HTTP),
    ],
)
async def test_every_type_shows_what_it_saw(
    api: PublicApi, alice: ApiUser, kind: str, evidence: Any
) -> None:
    check = await a_check(alice, kind)
    await store(api, check, passed(evidence=evidence, timings=Timings(dns=1, total=2)))
    seen = await only_result(alice, check)
    typed = [key for key, value in seen.items() if key.endswith("CheckResult") and value]
    assert typed == [f"{kind}CheckResult"]
    if kind != "url":
        shown = seen[f"{kind}CheckResult"]
        assert shown["evidence"]["kind"] == kind
        assert shown["timings"] == {"dns": 1, "total": 2}


async def test_a_list_is_newest_first_and_has_pages(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    runs = [
        await store(api, check, passed(), started_ms=START_MS + number * 1000)
        for number in range(3)
    ]
    path = f"/v1/check-results/{check['id']}"
    pages = [(await alice.get(f"{path}?limit=2&page={page}")).body for page in (1, 2, 3)]
    listed = [[one["checkRunId"] for one in page] for page in pages]
    assert listed == [[runs[2], runs[1]], [runs[0]], []]


async def test_a_list_can_be_narrowed(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    failure = Failure(kind=FailureKind.HTTP_STATUS, message="500")
    bad = Outcome(status=Status.FAILED, failure=failure, response_time_ms=3)
    first = await store(api, check, passed(), started_ms=START_MS)
    await store(
        api,
        check,
        bad,
        started_ms=START_MS + 1000,
        result_type=ResultType.ATTEMPT,
        run_id=77,
    )
    await store(api, check, bad, started_ms=START_MS + 2000, run_id=77, fence=2, attempt=2)
    missed = await store(api, check, started_ms=START_MS + 3000)

    async def runs(query: str) -> list[tuple[int, int]]:
        answer = await alice.get(f"/v1/check-results/{check['id']}?{query}")
        assert answer.status == 200, answer.body
        return [(one["checkRunId"], one["attempts"]) for one in answer.body]

    assert await runs("") == [(missed, 1), (77, 2), (first, 1)]
    assert await runs("resultType=ATTEMPT") == [(77, 1)]
    assert await runs("resultType=ALL") == [(missed, 1), (77, 2), (77, 1), (first, 1)]
    assert await runs("hasFailures=true") == [(77, 2)]
    assert await runs("hasFailures=false") == [(missed, 1), (first, 1)]
    assert await runs("location=attic") == []
    assert await runs("location=default&limit=1") == [(missed, 1)]
    assert await runs("checkType=TCP") == []
    assert await runs("checkType=API&limit=1") == [(missed, 1)]
    second = START_MS // 1000 + 2
    assert await runs(f"from={second}") == [(missed, 1), (77, 2)]
    assert await runs(f"to={second}") == [(first, 1)]
    assert await runs(f"from={second}&to={START_MS + 3000}") == [(77, 2)]
    assert await runs("from=2026-09-21T14:13:22Z") == [(missed, 1), (77, 2)]
    assert await runs("from=2026-09-21T16:13:22%2B02:00") == [(missed, 1), (77, 2)]
    assert await runs("from=2026-09-22") == []


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("from=yesterday", "from"),
        ("to=99999999999999999999", "to"),
        ("to=-1", "to"),
        ("from=1.2.3", "from"),
        ("resultType=SOME", "resultType"),
        ("hasFailures=perhaps", "hasFailures"),
    ],
)
async def test_a_wrong_query_is_named(alice: ApiUser, query: str, key: str) -> None:
    check = await a_check(alice)
    answer = await alice.get(f"/v1/check-results/{check['id']}?{query}")
    assert answer.status == 400, answer.body
    assert answer.body["validation"] == {"source": "query", "keys": [key]}


async def test_others_results_are_not_there(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, passed())
    seen = await only_result(alice, check)
    path = f"/v1/check-results/{check['id']}"
    assert (await charlie.get(path)).status == 404
    assert (await charlie.get(f"{path}/{seen['id']}")).status == 404
    assert (await alice.get(f"{path}/none")).status == 404
    other = await a_check(alice)
    assert (await alice.get(f"/v1/check-results/{other['id']}/{seen['id']}")).status == 404


async def test_a_list_of_checks_can_be_narrowed_by_the_last_result(
    api: PublicApi, alice: ApiUser
) -> None:
    good, bad = await a_check(alice, name="Good"), await a_check(alice, name="Bad")
    failure = Failure(kind=FailureKind.TIMEOUT, message="slow")
    await store(api, good, passed())
    await store(api, bad, Outcome(status=Status.TIMED_OUT, failure=failure))
    failing = (await alice.get("/v1/checks?status=failing")).body
    assert [check["name"] for check in failing] == ["Bad"]
    passing = (await alice.get("/v1/checks?status=passing")).body
    assert [check["name"] for check in passing] == ["Good"]


def http_with_body(body: str) -> HttpEvidence:
    assert HTTP.response is not None
    return msgspec.structs.replace(HTTP, response=msgspec.structs.replace(HTTP.response, body=body))


async def test_a_list_cuts_long_texts_and_says_so(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check, passed(evidence=http_with_body("x" * 60_000)))
    path = f"/v1/check-results/{check['id']}"
    [cut] = (await alice.get(path)).body
    assert (cut["isCut"], cut["apiCheckResult"]["response"]["body"]) == (True, "x" * 1_000)
    whole = (await alice.get(f"{path}/{cut['id']}")).body
    assert (whole["isCut"], len(whole["apiCheckResult"]["response"]["body"])) == (False, 60_000)


async def test_a_list_leaves_huge_details_out_and_says_so(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check, passed(evidence=http_with_body("x" * 300_000)))
    path = f"/v1/check-results/{check['id']}"
    [cut] = (await alice.get(path)).body
    assert (cut["isCut"], cut["status"], cut["apiCheckResult"]) == (True, "PASSED", None)
    whole = (await alice.get(f"{path}/{cut['id']}")).body
    assert len(whole["apiCheckResult"]["response"]["body"]) == 300_000


async def test_attempts_and_results_of_older_databases_keep_their_details(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    path = f"/v1/check-results/{check['id']}"
    await store(api, check, passed(1), result_type=ResultType.ATTEMPT)
    [attempt] = (await alice.get(f"{path}?resultType=ALL")).body
    run_id = await store(api, check, passed(2))

    def as_it_was(connection: Connection) -> None:
        run, of_it = (
            {"run": run_id},
            "FROM run_final JOIN result USING (run_id) WHERE run_id = :run",
        )
        connection.execute(text(f"INSERT INTO result_detail SELECT id, body {of_it}"), run)
        connection.execute(text("UPDATE run_final SET body = NULL WHERE run_id = :run"), run)

    listed = (await alice.get(path)).body
    await api.database.write(as_it_was)
    assert (await alice.get(path)).body == listed
    assert attempt["apiCheckResult"] is not None
    assert listed[0]["apiCheckResult"] is not None


async def test_a_missed_run_stands_in_the_list_with_its_cause(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check)
    seen = await only_result(alice, check)
    assert (seen["status"], seen["cause"], seen["hasErrors"], seen["hasFailures"]) == (
        "MISSED",
        "no_agent",
        True,
        False,
    )
    assert seen["error"] == NOBODY
