"""What is compared: the same looks at the same targets, said in both languages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from targets import NAME, Targets

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One comparison: the same look at the same target, said in both languages."""

    name: str
    spec: Mapping[str, Any]
    """Of our job."""
    module: str
    """Of blackbox_exporter's configuration."""
    target: str
    ours_at_once: int = 256
    """As many as an agent has slots by default."""
    theirs_at_once: int = 64
    """More costs it CPU time, and it begins to lose pings."""
    goal: float


def kinds_for(targets: Targets) -> tuple[Kind, ...]:
    """What is compared."""
    return (
        _http("http", f"http://{_HOST}:{targets.http_port}/", name="url", goal=4),
        _http("https", f"https://{_HOST}:{targets.https_port}/", name="https", goal=1.5),
        _tcp(targets.tcp_port),
        _dns(targets.dns_port),
        _icmp(),
    )


def _http(module: str, url: str, *, name: str, goal: float) -> Kind:
    spec = {"type": "URL", "request": {"url": url}, "assertions": [_is("STATUS_CODE", "200")]}
    return Kind(name=name, spec=spec, module=module, target=url, goal=goal)


def _tcp(port: int) -> Kind:
    spec = {"type": "TCP", "request": {"hostname": _HOST, "port": port}}
    return Kind(name="tcp", spec=spec, module="tcp", target=f"{_HOST}:{port}", goal=4)


def _dns(port: int) -> Kind:
    asked = {"query": NAME, "recordType": "A", "nameServer": _HOST, "port": port}
    spec = {"type": "DNS", "request": asked, "assertions": [_is("RESPONSE_CODE", "NOERROR")]}
    return Kind(name="dns", spec=spec, module="dns", target=f"{_HOST}:{port}", goal=2)


def _icmp() -> Kind:
    spec = {"type": "ICMP", "request": {"hostname": _HOST, "pingCount": 1}}
    return Kind(name="icmp", spec=spec, module="icmp", target=_HOST, goal=8)


def delayed(targets: Targets) -> Kind:
    """A page that takes a known time, asked for by a hundred checks at once."""
    url = f"http://{_HOST}:{targets.http_port}/slow"
    page = _http("http", url, name="accuracy", goal=1.5)
    return replace(page, ours_at_once=100, theirs_at_once=100)


def _is(source: str, target: str) -> dict[str, str]:
    return {"source": source, "comparison": "EQUALS", "target": target}


def blackbox_modules(ca_file: Path) -> dict[str, Any]:
    """Its configuration: the same looks, nothing more."""
    ip4 = {"preferred_ip_protocol": "ip4", "ip_protocol_fallback": False}
    http = {**ip4, "valid_status_codes": [200]}
    return {
        "modules": {
            "http": {"prober": "http", "timeout": "30s", "http": http},
            "https": {
                "prober": "http",
                "timeout": "30s",
                "http": {**http, "tls_config": {"ca_file": str(ca_file)}},
            },
            "tcp": {"prober": "tcp", "timeout": "30s", "tcp": ip4},
            "dns": {
                "prober": "dns",
                "timeout": "30s",
                "dns": {**ip4, "query_name": NAME, "query_type": "A", "transport_protocol": "udp"},
            },
            # It loses some of many pings at once; a short wait keeps those from stretching a round.
            "icmp": {"prober": "icmp", "timeout": "1s", "icmp": ip4},
        }
    }
