"""The page for Prometheus: documented names, true counts, no word of a customer."""

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from service.clickhouse.model import CopyState
from service.metrics import Metrics
from service.metrics_page import is_local
from service.results.model import Cause, ResultType, RunStatus, Stored
from service.settings import MetricsAccess
from tests.servers.service import RunningService, serve_service

PAGE = (Path(__file__).parents[2] / "docs/service.md").read_text()


def numbers(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {
        name.removeprefix("picket_service_"): float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines)
    }


async def metrics_of(service: RunningService) -> dict[str, float]:
    async with service.http.get(f"{service.url}/metrics") as answer:
        assert answer.status == 200
        return numbers(await answer.text())


def test_the_names_and_labels_are_the_documented_ones() -> None:
    metrics = Metrics()
    metrics.count_request("GET", "/v1/checks", 200, took_s=0.1)
    metrics.note_copies(CopyState(is_up=True, hours_waiting=1, rows=2))
    text = metrics.render({}).decode()
    documented = PAGE.split("## Metrics")[1].split("\n## ")[0]
    names = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", documented, re.MULTILINE)))
    declared = re.findall(r"# TYPE picket_service_(\S+)", text)
    assert sorted(declared) == sorted(names)
    assert "_created" not in text


async def test_the_queue_of_each_location_is_told_by_its_id(service: RunningService) -> None:
    queue = f'queue_runs{{location="{service.secrets.location_id}"}}'
    found = await metrics_of(service)
    assert found[queue] == 0
    await service.a_url_check()
    while not found[queue]:  # the scheduler comes by
        found = await metrics_of(service)
    assert found[queue] == 1
    assert found[queue.replace("queue_runs", "queue_oldest_wait_seconds")] >= 0


async def test_claims_and_the_results_that_were_stored_are_counted(
    service: RunningService,
) -> None:
    await service.hello()
    check_id = await service.a_url_check()
    [job] = (await service.claim()).body["jobs"]
    result = {
        **{name: job[name] for name in ("jobId", "fence", "runId")},
        "checkId": check_id,
        "checkType": "URL",
        "agentId": "agent-1",
        "startedAt": "2026-11-21T10:00:00Z",
        "startedAfterSeconds": 0.0,
        "tookSeconds": 0.1,
        "outcome": {"status": "PASSED", "responseTimeMs": 12.5},
    }
    for _ in range(2):  # the second time it is a duplicate
        await service.agent("POST", "/agent/v1/results", {"results": [result]})
    found = await metrics_of(service)
    assert (found["claims_total"], found["jobs_dealt_total"]) == (1, 1)
    assert found['results_total{status="PASSED",type="FINAL"}'] == 1
    route = 'requests_total{method="POST",route="/agent/v1/results",status="200"}'
    assert found[route] == 2


def test_missed_runs_are_counted_by_their_cause() -> None:
    metrics = Metrics()
    missed = (ResultType.FINAL, RunStatus.MISSED, Cause.NO_AGENT)
    seen = (ResultType.FINAL, RunStatus.PASSED, None)
    metrics.count_results(Stored((missed, seen, missed), ("a", "b", "a")))
    found = numbers(metrics.render({}).decode())
    assert found['runs_missed_total{cause="no_agent"}'] == 2
    assert found['runs_missed_total{cause="paused"}'] == 0
    assert found['results_total{status="MISSED",type="FINAL"}'] == 2


async def test_what_people_typed_stands_in_no_label(service: RunningService) -> None:
    await service.a_url_check(name="Hunter two")
    await service.alice.get("/ping/hunter2")
    await service.alice.get("/v1/hunter2")
    await service.alice.ask("PROPFIND", "/v1/checks/hunter2")
    found = await metrics_of(service)
    assert not [name for name in found if "hunter" in name.lower()]
    assert found['requests_total{method="GET",route="/ping/{token}",status="404"}'] == 1
    assert found['requests_total{method="GET",route="other",status="404"}'] == 1
    assert found['requests_total{method="other",route="/v1/checks/{id}",status="405"}'] == 1
    assert service.secrets.location_slug not in str(found)


async def test_a_request_that_a_proxy_passed_on_is_refused(service: RunningService) -> None:
    headers = {"x-forwarded-for": "192.0.2.1"}
    async with service.http.get(f"{service.url}/metrics", headers=headers) as answer:
        assert answer.status == 403
        assert "METRICS_ACCESS=anyone" in (await answer.json())["message"]


@pytest.mark.parametrize(("access", "status"), [("anyone", 200), ("off", 404)])
async def test_a_setting_says_who_may_read(tmp_path: Path, access: str, status: int) -> None:
    async with serve_service(tmp_path, metrics_access=MetricsAccess(access)) as service:
        headers = {"x-forwarded-for": "192.0.2.1"}
        async with service.http.get(f"{service.url}/metrics", headers=headers) as answer:
            assert answer.status == status


@pytest.mark.parametrize(
    ("client", "near"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5), True),
        (("::ffff:127.0.0.1", 5), True),
        (("192.0.2.1", 5), False),
        (("::ffff:192.0.2.1", 5), False),
        (("a socket", 0), False),
        (None, False),
    ],
)
def test_only_loopback_is_local(client: Any, near: bool) -> None:  # noqa: FBT001 - the expectation
    assert is_local(HTTPConnection({"type": "http", "headers": [], "client": client})) is near
