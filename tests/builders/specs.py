"""Builders of specs, assertions and jobs: everything has a sensible default."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    AgenticSpec,
    ApiSpec,
    BrowserSpec,
    CheckSpec,
    CheckType,
    DnsRequest,
    DnsSpec,
    HeartbeatSpec,
    IcmpRequest,
    IcmpSpec,
    MultiStepSpec,
    PlaywrightSpec,
    TcpRequest,
    TcpSpec,
    UrlSpec,
)
from contract.job import Job, Variable
from contract.requests import HttpRequest, KeyValue

NEVER_SLOW: Mapping[str, Any] = {"degraded_after_ms": None, "failed_after_ms": None}
"""A test that is about slowness sets limits; no other may fail for a machine that stands still."""
SCHEDULED_FOR = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
DEAD_PORT = 9
"""Discard: nothing listens there in a test; use a bound port wherever one must answer."""


def an_assertion(
    source: Source, comparison: Comparison, target: str = "", **more: Any
) -> Assertion:
    return Assertion(source=source, comparison=comparison, target=target, **more)


def a_status_assertion(
    target: str = "200", comparison: Comparison = Comparison.EQUALS
) -> Assertion:
    return an_assertion(Source.STATUS_CODE, comparison, target)


def headers(values: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=key, value=value) for key, value in values.items())


def an_http_request(url: str = "http://127.0.0.1:9/", **changes: Any) -> HttpRequest:
    return HttpRequest(url=url, **changes)


def a_url_spec(url: str = "http://127.0.0.1:9/", *, request: Any = None, **changes: Any) -> UrlSpec:
    return UrlSpec(request=request or an_http_request(url), **{**NEVER_SLOW, **changes})


def an_api_spec(
    url: str = "http://127.0.0.1:9/", *, request: Any = None, **changes: Any
) -> ApiSpec:
    return ApiSpec(request=request or an_http_request(url), **{**NEVER_SLOW, **changes})


def a_tcp_spec(
    hostname: str = "127.0.0.1", port: int = DEAD_PORT, *, request: Any = None, **changes: Any
) -> TcpSpec:
    asked = request or TcpRequest(hostname=hostname, port=port)
    return TcpSpec(request=asked, **{**NEVER_SLOW, **changes})


def a_dns_spec(query: str = "example.test", *, request: Any = None, **changes: Any) -> DnsSpec:
    return DnsSpec(request=request or DnsRequest(query=query), **{**NEVER_SLOW, **changes})


def an_icmp_spec(hostname: str = "127.0.0.1", *, request: Any = None, **changes: Any) -> IcmpSpec:
    return IcmpSpec(request=request or IcmpRequest(hostname=hostname, ping_count=1), **changes)


def a_heartbeat_spec(**changes: Any) -> HeartbeatSpec:
    return HeartbeatSpec(
        **{"period_s": 60, "grace_s": 30, "ping_token": "nightly-backup", **changes}
    )


def a_spec_of(kind: CheckType, **changes: Any) -> CheckSpec:
    """A spec of any type, so that a test can be run over all of them."""
    return _SPECS[kind](**changes)


def a_job(spec: CheckSpec | None = None, **changes: Any) -> Job:
    fields = {
        "job_id": "job-1",
        "fence": 1,
        "lease_s": 60,
        "run_id": "run-1",
        "check_id": "check-1",
        "check_name": "Front page",
        "location": "cellar",
        "scheduled_for": SCHEDULED_FOR,
        "deadline_s": 30,
        "spec": spec if spec is not None else a_url_spec(),
    }
    return Job(**{**fields, **changes})  # type: ignore[arg-type]  # a builder takes any field


def a_variable(key: str = "NAME", value: str = "value", **changes: Any) -> Variable:
    return Variable(key=key, value=value, **changes)


def a_secret(key: str = "TOKEN", value: str = "s3cr3t/t0ken+value") -> Variable:
    return Variable(key=key, value=value, secret=True)


_SPECS: Mapping[CheckType, Any] = {
    CheckType.URL: a_url_spec,
    CheckType.API: an_api_spec,
    CheckType.TCP: a_tcp_spec,
    CheckType.DNS: a_dns_spec,
    CheckType.ICMP: an_icmp_spec,
    CheckType.HEARTBEAT: a_heartbeat_spec,
    CheckType.BROWSER: lambda **changes: BrowserSpec(**{"script": "", **changes}),
    CheckType.MULTI_STEP: lambda **changes: MultiStepSpec(**{"script": "", **changes}),
    CheckType.PLAYWRIGHT: lambda **changes: PlaywrightSpec(
        **{"bundle_sha256": "0" * 64, **changes}
    ),
    CheckType.AGENTIC: lambda **changes: AgenticSpec(**{"prompt": "Log in.", **changes}),
}
