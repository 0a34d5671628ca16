import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from sqlalchemy import insert, select

from contract.evidence import BrowserEvidence, HttpEvidence, PageMetrics, PageSeen, SentRequest
from contract.result import IcmpEvidence, Outcome, Status, Timings, TlsFacts
from service.db.tables.checks import check_
from service.exporter.rules import render_page
from service.heartbeats.actions import ReceivedPing, take_pings
from service.results.model import ResultType
from tests.builders.check_bodies import check_body, script_body
from tests.builders.stored_results import START_MS, a_record, failed, passed, store, store_all
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/prometheus/metrics"
DOCS = (Path(__file__).parents[3] / "docs/service.md").read_text()


async def made(user: ApiUser, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", body)
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def samples(user: ApiUser, family: str) -> list[Sample]:
    """The samples of a family, as Prometheus reads the page."""
    answer = await user.get(PATH)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    (found,) = [
        one
        for one in text_string_to_metric_families(answer.body)
        if one.name == f"picket_{family}".removesuffix("_total")
    ]
    return list(found.samples)


async def values(user: ApiUser, family: str, by: str) -> dict[str, float]:
    return {one.labels[by]: one.value for one in await samples(user, family)}


async def test_a_check_has_its_name_type_and_tags_as_labels(alice: ApiUser) -> None:
    group = await alice.post("/v1/check-groups", {"name": "Sh\\op", "tags": ["team:web"]})
    body = check_body("url", name='A "b"\n', groupId=group.body["id"], muted=True)
    body["tags"] = ["prod", "eu", "env-1:x", "name:mine", "1:2", "group:of tags"]
    check = await made(alice, "url", body)
    status, *_ = await samples(alice, "check_status")
    assert status.labels == {
        "name": 'A "b"\n',
        "check_id": check["id"],
        "check_type": "url",
        "group": "Sh\\op",
        "muted": "true",
        "activated": "true",
        "tags": "eu,prod",
        "env_1": "x",
        "tag_name": "mine",
        "tag_1": "2",
        "tag_group": "of tags",
        "team": "web",
        "status": "passing",
    }


async def test_a_check_has_the_status_of_its_newest_result(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "url", check_body("url"))
    await store(api, check, passed())
    await store(api, check, failed(), started_ms=START_MS + 1_000)
    await store(api, check, None, started_ms=START_MS + 2_000)  # nobody looked
    found = await values(alice, "check_status", "status")
    assert found == {"passing": 0, "degraded": 0, "failing": 1}


async def test_a_check_that_nobody_looked_at_has_no_status(alice: ApiUser) -> None:
    await made(alice, "url", check_body("url"))
    assert set((await values(alice, "check_status", "status")).values()) == {0}


async def test_final_results_are_counted_by_their_status(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "url", check_body("url"))
    for outcome in (passed(), passed(), failed(), Outcome(status=Status.TIMED_OUT), None):
        await store(api, check, outcome)
    await store(api, check, failed(), result_type=ResultType.ATTEMPT)
    found = await values(alice, "check_result_total", "status")
    assert found == {"passing": 2, "degraded": 0, "failing": 2, "missed": 1, "error": 0}


async def test_an_http_check_has_its_phases_and_its_certificate(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "url", check_body("url"))
    evidence = HttpEvidence(
        request=SentRequest(method="GET", url="https://shop.example"),
        tls=TlsFacts(verified=True, days_to_expiry=2),
    )
    timings = Timings(dns=1, first_byte=20.5, total=30)
    await store(api, check, passed(30, timings=timings, evidence=evidence))
    assert await values(alice, "check_timing_seconds", "phase") == {
        "dns": 0.001,
        "first_byte": 0.0205,
        "total": 0.03,
    }
    (took,) = await samples(alice, "check_response_time_seconds")
    (left,) = await samples(alice, "certificate_expiry_seconds")
    assert took.value == 0.03
    assert 2 * 86_400 - 60 <= left.value <= 2 * 86_400


async def test_a_ping_check_has_its_latency_and_loss(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "icmp", check_body("icmp"))
    evidence = IcmpEvidence(
        hostname="h", ip_family="IPv4", packet_loss=25, latency={"avg": 2, "stdDev": 0.5}
    )
    await store(api, check, passed(evidence=evidence))
    assert await values(alice, "check_latency_seconds", "stat") == {"avg": 0.002, "stdDev": 0.0005}
    (loss,) = await samples(alice, "check_packet_loss_ratio")
    assert loss.value == 0.25


async def test_a_browser_check_has_the_vitals_of_its_first_page(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "browser", script_body("browser"))
    metrics = PageMetrics(ttfb_ms=10, fcp_ms=20, lcp_ms=30, cls=0.1)
    pages = (PageSeen(index=0, url="https://a.example", metrics=metrics),)
    evidence = BrowserEvidence(runtime_id="2026.04", pages=pages)
    await store(api, check, passed(evidence=evidence))
    found = await values(alice, "browser_web_vitals_seconds", "vital")
    assert found == {"ttfb": 0.01, "fcp": 0.02, "lcp": 0.03}
    (shift,) = await samples(alice, "browser_layout_shift")
    assert shift.value == 0.1


async def test_a_heartbeat_has_its_last_ping_and_its_interval(
    api: PublicApi, alice: ApiUser
) -> None:
    pinged = await made(alice, "heartbeat", check_body("heartbeat"))
    await made(alice, "heartbeat", check_body("heartbeat"))
    one = ReceivedPing(
        ping_id=None,
        token=pinged["heartbeat"]["pingToken"],
        age_s=0,
        method="GET",
        source="",
        user_agent="",
    )
    now_ms = await api.database.read(api.backend.clock.now_ms)
    await api.database.write(lambda c: take_pings(c, [one], now_ms=now_ms))
    (last,) = await samples(alice, "heartbeat_last_ping_timestamp_seconds")
    assert (last.labels["check_id"], last.value) == (pinged["id"], now_ms / 1000)
    assert len(await samples(alice, "heartbeat_expected_interval_seconds")) == 2


async def test_a_location_has_its_queue_and_its_agents(alice: ApiUser) -> None:
    check = await made(alice, "url", check_body("url"))
    target = {"target": {"checkId": [check["id"]]}}
    assert (await alice.post("/v1/check-sessions/trigger", target)).status == 201
    (size,) = await samples(alice, "private_location_queue_size")
    assert size.labels == {
        "private_location_id": alice.secrets.location_id,
        "private_location_name": "Default location",
        "private_location_slug_name": "default",
    }
    assert size.value == 1
    (agents,) = await samples(alice, "private_location_agents")
    assert agents.value == 0


async def test_an_account_sees_its_own_checks_only(alice: ApiUser, charlie: ApiUser) -> None:
    await made(alice, "url", check_body("url"))
    assert await samples(charlie, "check_status") == []
    nobody = await alice.get(PATH, headers={"authorization": "Bearer cu_nobody"})
    assert nobody.status == 401


async def test_the_page_is_kept_for_half_a_minute(api: PublicApi, alice: ApiUser) -> None:
    before = (await alice.get(PATH)).body
    await made(alice, "url", check_body("url"))
    assert (await alice.get(PATH)).body == before


def test_the_names_are_the_documented_ones() -> None:
    section = DOCS.split("## Metrics of checks")[1].split("\n## ")[0]
    rows = "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))
    documented = [f"picket_{name}" for name in re.findall(r"`(\w+)`", rows)]
    assert documented == re.findall(r"# TYPE (\S+)", render_page([], []).decode())


async def test_the_page_of_a_thousand_checks_is_made_quickly(
    api: PublicApi, alice: ApiUser
) -> None:
    """The aim is 100 ms of one processor; the limit leaves room for a busy machine."""
    first = await made(alice, "url", check_body("url"))
    ids = [f"copy-{order}" for order in range(999)]
    await api.database.write(copies(first["id"], ids))
    outcome = passed(30, timings=Timings(dns=1, tcp=2, tls=3, first_byte=4, total=10))
    records = [
        a_record({**first, "id": one}, location_id=alice.secrets.location_id, outcome=outcome)
        for one in (first["id"], *ids)
    ]
    await store_all(api, records)
    began_s = time.process_time()
    page = (await alice.get(PATH)).body
    took_s = time.process_time() - began_s
    assert page.count("\npicket_check_timing_seconds{") == 5_000
    assert took_s < 1.0


def copies(check_id: str, ids: Sequence[str]) -> Callable[[Any], None]:
    """Makes checks like one, with these ids."""

    def change(connection: Any) -> None:
        row = connection.execute(select(check_).where(check_.c.id == check_id)).one()
        connection.execute(insert(check_), [{**row._mapping, "id": one} for one in ids])

    return change
