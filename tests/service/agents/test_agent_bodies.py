"""Bodies of agents that are packed, malformed, too large, or hold what nobody can store."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from contract.agent_api import MAX_RESULTS_BYTES
from service.agents.messages import replace_nul
from service.settings import PostgresUrl
from tests.servers.service import (
    RESULTS,
    RunningService,
    a_claimed_job,
    a_result_body,
    serve_service,
)


async def test_results_may_be_gzip(service: RunningService) -> None:
    job = await a_claimed_job(service)
    packed = gzip.compress(json.dumps({"results": [a_result_body(job)]}).encode())
    answer = await service.agent("POST", RESULTS, data=packed, headers={"content-encoding": "gzip"})
    assert len(answer.body["accepted"]) == 1


async def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(service: RunningService) -> None:
    bomb = gzip.compress(b" " * (MAX_RESULTS_BYTES * 4))
    answer = await service.agent("POST", RESULTS, data=bomb, headers={"content-encoding": "gzip"})
    assert answer.status == 413


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"{}", mtime=0)[:-4]])
async def test_broken_gzip_is_refused(service: RunningService, body: bytes) -> None:
    answer = await service.agent("POST", RESULTS, data=body, headers={"content-encoding": "gzip"})
    assert answer.status == 400


async def test_an_unknown_encoding_is_refused(service: RunningService) -> None:
    answer = await service.agent("POST", RESULTS, data=b"{}", headers={"content-encoding": "br"})
    assert answer.status == 400


async def test_a_body_that_is_too_long_is_refused(service: RunningService) -> None:
    answer = await service.agent("POST", "/agent/v1/pings", data=io.BytesIO(b" " * 1_048_577))
    assert answer.status == 413


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/agent/v1/jobs/claim", {"claimId": 1}, "$.claimId"),
        ("/agent/v1/jobs/claim", {"claimId": "c", "slots": {"uptime": -1}}, "$.slots"),
        ("/agent/v1/hello", {"agentId": "a"}, "version"),
        ("/agent/v1/jobs/renew", {"leases": [{"jobId": "1"}]}, "$.leases[0]"),
        ("/agent/v1/results", {"results": [{"jobId": "1", "fence": "x"}]}, "$.results[0]"),
        ("/agent/v1/results", {"results": [{}] * 257}, "$.results"),
        ("/agent/v1/events", {"events": [{"message": 1}]}, "$.events[0].message"),
    ],
)
async def test_a_malformed_body_is_refused_with_the_wrong_fields_path(
    service: RunningService, path: str, body: Any, said: str
) -> None:
    answer = await service.agent("POST", path, body)
    assert answer.status == 400
    assert said in answer.body["message"]


async def test_what_is_not_json_is_refused(service: RunningService) -> None:
    assert (await service.agent("POST", RESULTS, data=b"\xff{")).status == 400


async def test_a_malformed_result_is_rejected_and_its_neighbour_taken(
    service: RunningService,
) -> None:
    job = await a_claimed_job(service)
    bad = a_result_body(job, outcome={"status": "WONDERFUL"})
    answer = await service.agent("POST", RESULTS, {"results": [bad, a_result_body(job)]})
    [rejected] = answer.body["rejected"]
    assert "$.results[0].outcome.status" in rejected["reason"]
    assert len(answer.body["accepted"]) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("jobs/renew", {"leases": [{"jobId": "1", "fence": 2**63}]}),
        ("jobs/release", {"jobs": [{"jobId": "1", "fence": 2**70, "reason": "draining"}]}),
        (
            "jobs/claim",
            {"claimId": "c", "slots": {"uptime": 2**63}, "checkTypes": ["URL"], "waitSeconds": 0},
        ),
        (
            "pings",
            {
                "pings": [
                    {
                        "pingId": "p",
                        "token": "nightly",
                        "receivedAt": "2026-11-21T10:00:00Z",
                        "ageSeconds": 1e308,
                        "method": "GET",
                    }
                ]
            },
        ),
    ],
)
async def test_a_number_beyond_the_databases_is_no_fault_of_ours(
    service: RunningService, path: str, body: dict[str, Any]
) -> None:
    await service.hello()
    heartbeat = {"period": 1, "periodUnit": "hours", "grace": 0, "graceUnit": "hours"}
    made = await service.alice.post(
        "/v1/checks/heartbeat",
        {"name": "Nightly", "heartbeat": {**heartbeat, "pingToken": "nightly"}},
    )
    assert made.status == 201
    assert (await service.agent("POST", f"/agent/v1/{path}", body)).status == 200


async def test_a_fence_that_is_none_is_rejected(service: RunningService) -> None:
    job = await a_claimed_job(service)
    sent = a_result_body({**job, "fence": 2**63})
    answer = await service.agent("POST", RESULTS, {"results": [sent, a_result_body(job)]})
    assert (len(answer.body["rejected"]), len(answer.body["accepted"])) == (1, 1)


@pytest.mark.parametrize("changes", [{"version": "9" * 5000}, {"agentId": ""}, {"platform": ""}])
async def test_a_hello_with_a_name_of_no_sensible_length_is_refused(
    service: RunningService, changes: dict[str, str]
) -> None:
    assert (await service.hello(**changes)).status == 400


async def test_a_body_that_is_nested_too_deeply_is_refused(service: RunningService) -> None:
    deep = b'{"x":' + b"[" * 400_000
    answer = await service.agent("POST", "/agent/v1/jobs/renew", data=deep)
    assert answer.status == 400


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (rb'"a\u0000b"', "a\N{REPLACEMENT CHARACTER}b"),
        (rb'"\u0000\u0000"', "\N{REPLACEMENT CHARACTER}" * 2),
        (rb'"\\u0000"', r"\u0000"),
        (rb'"\\\u0000"', "\\\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_nul_is_replaced_and_text_that_looks_like_one_is_not(sent: bytes, read: str) -> None:
    assert json.loads(replace_nul(sent)) == read


async def test_a_failure_whose_message_has_a_nul_is_stored_and_grouped(
    tmp_path: Path, postgresql_url: str | None
) -> None:
    changes = {"database": PostgresUrl(postgresql_url)} if postgresql_url else {}
    async with serve_service(tmp_path, **changes) as service:
        job = await a_claimed_job(service)
        failure = {"kind": "ASSERTION", "message": "It should be a, but it is a\0b."}
        outcome = {"status": "FAILED", "failure": failure}
        sent = a_result_body({**job, "attempt": 2}, outcome=outcome)
        answer = await service.agent("POST", RESULTS, {"results": [sent]})
        assert (answer.status, len(answer.body["accepted"])) == (200, 1)
        results = await service.alice.get(f"/v1/check-results/{job['checkId']}?resultType=ALL")
        assert "a\N{REPLACEMENT CHARACTER}b" in str(results.body)
