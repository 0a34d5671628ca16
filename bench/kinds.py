"""What is compared: the same looks at the same targets, said in both languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from targets import NAME, Targets


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
    plain = f"http://127.0.0.1:{targets.http_port}/"
    tls = f"https://127.0.0.1:{targets.https_port}/"
    url = {"type": "URL", "assertions": [_is("STATUS_CODE", "200")]}
    tcp = {"hostname": "127.0.0.1", "port": targets.tcp_port}
    dns = {"query": NAME, "recordType": "A", "nameServer": "127.0.0.1", "port": targets.dns_port}
    return (
        Kind(
            name="url", spec={**url, "request": {"url": plain}}, module="http", target=plain, goal=4
        ),
        Kind(
            name="https",
            spec={**url, "request": {"url": tls}},
            module="https",
            target=tls,
            goal=1.5,
        ),
        Kind(
            name="tcp",
            spec={"type": "TCP", "request": tcp},
            module="tcp",
            target=f"127.0.0.1:{targets.tcp_port}",
            goal=4,
        ),
        Kind(
            name="dns",
            spec={
                "type": "DNS",
                "request": dns,
                "assertions": [_is("RESPONSE_CODE", "NOERROR")],
            },
            module="dns",
            target=f"127.0.0.1:{targets.dns_port}",
            goal=2,
        ),
        Kind(
            name="icmp",
            spec={"type": "ICMP", "request": {"hostname": "127.0.0.1", "pingCount": 1}},
            module="icmp",
            target="127.0.0.1",
            goal=8,
        ),
    )


def delayed(targets: Targets) -> Kind:
    """A page that takes a known time, asked for by a hundred checks at once."""
    url = f"http://127.0.0.1:{targets.http_port}/slow"
    spec = {
        "type": "URL",
        "request": {"url": url},
        "assertions": [_is("STATUS_CODE", "200")],
    }
    return Kind(
        name="accuracy",
        spec=spec,
        module="http",
        target=url,
        ours_at_once=100,
        theirs_at_once=100,
        goal=1.5,
    )


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
