"""The checks that `picket up` sets up at its demo target: all six types, good and bad days."""

from dataclasses import dataclass
from typing import Any, Final

from contract.checks import CheckType
from picket.demo_dns import ZONE
from picket.demo_target import HOST, DemoPorts

TAG: Final = "starter"
"""Marks the checks that are ours to set right at the next start."""
PING_TOKEN: Final = "starter-nightly-job"  # noqa: S105 - a loopback demo address, no secret
_EVERY_S: Final = 10
_NAME: Final = ZONE.rstrip(".")


@dataclass(frozen=True, slots=True)
class StarterCheck:
    """A check as the public API takes it."""

    kind: CheckType
    body: dict[str, Any]

    @property
    def name(self) -> str:
        """What tells the starter checks apart."""
        return str(self.body["name"])


def starter_checks(ports: DemoPorts, *, location: str) -> tuple[StarterCheck, ...]:
    """The checks for a demo target at these ports, run at one private location."""
    shop = f"http://{HOST}:{ports.http}"
    bodies = (
        *_url_checks(shop, f"https://{HOST}:{ports.https}"),
        *_api_checks(shop),
        *_network_checks(ports),
    )
    place = {"privateLocations": [location], "tags": [TAG]}
    return tuple(StarterCheck(kind, {**place, **_schedule(kind), **body}) for kind, body in bodies)


def _schedule(kind: CheckType) -> dict[str, int]:
    """As often as the type may run: only API and TCP checks may run more than once a minute."""
    if kind in {CheckType.API, CheckType.TCP}:
        return {"frequency": 0, "frequencyOffset": _EVERY_S}
    return {"frequency": 1}


Bodies = tuple[tuple[CheckType, dict[str, Any]], ...]


def _url_checks(shop: str, secure_shop: str) -> Bodies:
    return (
        (CheckType.URL, {"name": "Front page", "request": {"url": f"{shop}/"}}),
        (
            CheckType.URL,
            {"name": "Front page, secure", "request": {"url": f"{secure_shop}/"}},
        ),
        (
            CheckType.URL,
            {"name": "Moved page", "request": {"url": f"{shop}/old", "followRedirects": True}},
        ),
        (
            CheckType.URL,
            {
                "name": "Slow page (degraded)",
                "request": {"url": f"{shop}/slow"},
                "degradedResponseTime": 200,
            },
        ),
        (CheckType.URL, {"name": "Broken page (fails)", "request": {"url": f"{shop}/broken"}}),
    )


def _api_checks(shop: str) -> Bodies:
    return (
        (
            CheckType.API,
            {
                "name": "Stock list",
                "request": {
                    "method": "GET",
                    "url": f"{shop}/api/stock",
                    "assertions": [
                        _assertion("STATUS_CODE", "EQUALS", "200"),
                        _assertion("JSON_BODY", "EQUALS", "true", property="$.open"),
                        _assertion("JSON_BODY", "GREATER_THAN", "0", property="$.items[*].count"),
                    ],
                },
            },
        ),
        (
            CheckType.API,
            {
                "name": "Place an order",
                "request": {
                    "method": "POST",
                    "url": f"{shop}/api/orders",
                    "bodyType": "JSON",
                    "body": '{"item": "tea", "id": "{{$UUID}}"}',
                    "assertions": [
                        _assertion("STATUS_CODE", "EQUALS", "201"),
                        _assertion("HEADERS", "EQUALS", "1001", property="x-order"),
                    ],
                },
            },
        ),
        (
            CheckType.API,
            {
                "name": "Flaky page (fails at times)",
                "request": {"method": "GET", "url": f"{shop}/flaky"},
            },
        ),
    )


def _network_checks(ports: DemoPorts) -> Bodies:
    server = {"nameServer": HOST, "port": ports.dns}
    return (
        (
            CheckType.TCP,
            {
                "name": "Echo port",
                "request": {
                    "hostname": HOST,
                    "port": ports.echo,
                    "data": "hello\n",
                    "assertions": [_assertion("RESPONSE_DATA", "CONTAINS", "echo: hello")],
                },
            },
        ),
        (CheckType.TCP, {"name": "Web port", "request": {"hostname": HOST, "port": ports.http}}),
        (
            CheckType.TCP,
            {
                "name": "Secure web port",
                "request": {"hostname": HOST, "port": ports.https, "tls": True},
            },
        ),
        (
            CheckType.DNS,
            {
                "name": "Shop's address",
                "request": {
                    **server,
                    "recordType": "A",
                    "query": f"www.{_NAME}",
                    "assertions": [_assertion("TEXT_ANSWER", "CONTAINS", HOST)],
                },
            },
        ),
        (
            CheckType.DNS,
            {
                "name": "Shop's mail server",
                "request": {**server, "recordType": "MX", "query": _NAME, "protocol": "TCP"},
            },
        ),
        (
            CheckType.ICMP,
            {"name": "Loopback", "request": {"hostname": HOST, "pingCount": 2}},
        ),
        (
            CheckType.HEARTBEAT,
            {
                "name": "Nightly job",
                "heartbeat": {
                    "period": 30,
                    "periodUnit": "seconds",
                    "grace": 10,
                    "graceUnit": "seconds",
                    "pingToken": PING_TOKEN,
                },
            },
        ),
    )


def _assertion(source: str, comparison: str, target: str, **more: str) -> dict[str, str]:
    return {"source": source, "comparison": comparison, "target": target, **more}
