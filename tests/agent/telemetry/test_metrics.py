"""The metrics carry the documented names, and nothing else."""

import re

import pytest

from agent.telemetry.metrics import Metrics
from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.result import Status

DOCUMENTED = {
    "body_memory_bytes": set(),
    "body_memory_waiting": set(),
    "leaks_withheld_total": {"member"},
    "jobs_total": {"type", "status"},
    "job_duration_seconds": {"type"},
    "job_lag_seconds": set(),
    "slots_free": {"lane"},
    "oldest_wait_seconds": {"lane"},
    "lease_renew_failures_total": set(),
    "results_spooled": set(),
    "results_dropped_total": set(),
    "artifacts_spooled": set(),
    "artifacts_dropped_total": set(),
    "released_total": {"reason"},
    "scrub_replacements_total": set(),
    "scrub_refusals_total": set(),
    "service_requests_total": {"call", "status"},
    "event_loop_lag_seconds": set(),
    "tasks": set(),
    "info": {"version", "runtime"},
}
"""Protocol, section "Metrics": each name and its labels."""


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", runtime="cpython-3.11.7")


def read(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_the_names_are_the_documented_ones(metrics: Metrics) -> None:
    metrics.service_request("claim", "200")
    declared = set(re.findall(r"# TYPE (\S+)", metrics.text().decode()))
    assert declared == {f"picket_agent_{name}" for name in DOCUMENTED}


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_the_labels_are_the_documented_ones(metrics: Metrics, name: str) -> None:
    metrics.service_request("claim", "200")
    seen = {
        label
        for series in read(metrics)
        if series.startswith(f"picket_agent_{name}")
        for label in re.findall(r'(\w+)="', series)
    }
    assert seen - {"le"} == DOCUMENTED[name]


def test_a_finished_job_is_counted_and_timed(metrics: Metrics) -> None:
    metrics.job_started(lag_s=0.2)
    metrics.job_finished(CheckType.DNS, Status.DEGRADED, took_s=0.3)
    seen = read(metrics)
    assert seen['picket_agent_jobs_total{status="DEGRADED",type="DNS"}'] == 1
    assert seen['picket_agent_job_duration_seconds_sum{type="DNS"}'] == 0.3
    assert seen["picket_agent_job_lag_seconds_count"] == 1


def test_a_series_stands_at_zero_before_its_first_event(metrics: Metrics) -> None:
    seen = read(metrics)
    assert seen['picket_agent_jobs_total{status="FAILED",type="URL"}'] == 0
    assert seen['picket_agent_released_total{reason="draining"}'] == 0


def test_each_event_moves_its_own_series(metrics: Metrics) -> None:
    metrics.job_released(ReleaseReason.NO_ROOM)
    metrics.slots_free(Lane.UPTIME, 250)
    metrics.oldest_wait(Lane.MAIN, wait_s=1.5)
    metrics.renew_failed()
    metrics.results_spooled(7)
    metrics.results_dropped(2)
    metrics.scrubbed(3)
    metrics.scrub_refused()
    metrics.service_request("results", "503")
    metrics.loop_lag(0.25)
    metrics.tasks(9)
    seen = read(metrics)
    assert {name: seen[f"picket_agent_{name}"] for name in EXPECTED} == EXPECTED


EXPECTED = {
    'released_total{reason="no_room"}': 1,
    'slots_free{lane="uptime"}': 250,
    'oldest_wait_seconds{lane="main"}': 1.5,
    "lease_renew_failures_total": 1,
    "results_spooled": 7,
    "results_dropped_total": 2,
    "scrub_replacements_total": 3,
    "scrub_refusals_total": 1,
    'service_requests_total{call="results",status="503"}': 1,
    "event_loop_lag_seconds": 0.25,
    "tasks": 9,
}


def test_two_agents_in_one_process_do_not_share_a_registry(metrics: Metrics) -> None:
    Metrics(version="2", runtime="other").renew_failed()
    assert read(metrics)["picket_agent_lease_renew_failures_total"] == 0
