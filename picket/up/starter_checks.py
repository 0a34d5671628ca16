"""The checks that `picket up` begins with."""

from dataclasses import dataclass
from typing import Any, Final

from contract.checks import CheckType
from picket.up.demo_target import HOST, ZONE, DemoPorts

TAG: Final = "starter"
"""Marks the checks that the next start updates."""
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

    @property
    def has_scripts(self) -> bool:
        """Whether it has a setup script."""
        return "localSetupScript" in self.body


def starter_checks(ports: DemoPorts, *, location: str) -> tuple[StarterCheck, ...]:
    """The checks for a demo target at these ports, run at one private location."""
    shop = f"http://{HOST}:{ports.http}"
    bodies = (
        *_url_checks(shop, f"https://{HOST}:{ports.https}"),
        *_api_checks(shop),
        *_network_checks(ports),
        *script_checks(shop),
    )
    place = {"privateLocations": [location], "tags": [TAG]}
    return tuple(
        StarterCheck(kind, {**place, **_schedule(kind, body), **body}) for kind, body in bodies
    )


def _schedule(kind: CheckType, body: dict[str, Any]) -> dict[str, int]:
    """Run a type as often as it may; scripts once a minute, because they use the most resources."""
    if kind in {CheckType.API, CheckType.TCP} and "localSetupScript" not in body:
        return {"frequency": 0, "frequencyOffset": _EVERY_S}
    return {"frequency": 1}


Body = tuple[CheckType, dict[str, Any]]
Bodies = tuple[Body, ...]


def _url_checks(shop: str, secure_shop: str) -> Bodies:
    return (
        _url("Front page", f"{shop}/"),
        _url("Front page, secure", f"{secure_shop}/"),
        _url("Moved page", f"{shop}/old", followRedirects=True),
        _slow(_url("Slow page (degraded)", f"{shop}/slow")),
        _url("Broken page (fails)", f"{shop}/broken"),
    )


def _api_checks(shop: str) -> Bodies:
    return (
        _api(
            "Stock list",
            f"{shop}/api/stock",
            _assertion("STATUS_CODE", "EQUALS", "200"),
            _assertion("JSON_BODY", "EQUALS", "true", property="$.open"),
            _assertion("JSON_BODY", "GREATER_THAN", "0", property="$.items[*].count"),
        ),
        _api(
            "Place an order",
            f"{shop}/api/orders",
            _assertion("STATUS_CODE", "EQUALS", "201"),
            _assertion("HEADERS", "EQUALS", "1001", property="x-order"),
            body='{"item": "tea", "id": "{{$UUID}}"}',
        ),
        _api("Flaky page (fails at times)", f"{shop}/flaky"),
    )


def _network_checks(ports: DemoPorts) -> Bodies:
    echoed = _assertion("RESPONSE_DATA", "CONTAINS", "echo: hello")
    found = _assertion("TEXT_ANSWER", "CONTAINS", HOST)
    www, mail = ("A", f"www.{_NAME}"), ("MX", _NAME)
    return (
        _tcp("Echo port", ports.echo, data="hello\n", assertions=[echoed]),
        _tcp("Web port", ports.http),
        _tcp("Secure web port", ports.https, tls=True),
        _dns("Shop's address", www, ports.dns, assertions=[found]),
        _dns("Shop's mail server", mail, ports.dns, protocol="TCP"),
        (CheckType.ICMP, {"name": "Loopback", "request": {"hostname": HOST, "pingCount": 2}}),
        _heartbeat("Nightly job", period_s=30, grace_s=10),
    )


def _url(name: str, url: str, **request: Any) -> Body:
    return CheckType.URL, {"name": name, "request": {"url": url, **request}}


def _slow(check: Body) -> Body:
    """Degraded from 200 ms on."""
    kind, fields = check
    return kind, {**fields, "degradedResponseTime": 200}


def _api(name: str, url: str, *assertions: dict[str, str], body: str | None = None) -> Body:
    """A GET, or a POST of a JSON body."""
    sent = {"method": "GET"} if body is None else _post(body)
    return CheckType.API, {
        "name": name,
        "request": {**sent, "url": url, "assertions": [*assertions]},
    }


def _post(body: str) -> dict[str, str]:
    return {"method": "POST", "bodyType": "JSON", "body": body}


def _tcp(name: str, port: int, **request: Any) -> Body:
    return CheckType.TCP, {"name": name, "request": {"hostname": HOST, "port": port, **request}}


def _dns(name: str, question: tuple[str, str], port: int, **request: Any) -> Body:
    record_type, query = question
    asked = {"recordType": record_type, "query": query, "nameServer": HOST, "port": port}
    return CheckType.DNS, {"name": name, "request": {**asked, **request}}


def _heartbeat(name: str, *, period_s: int, grace_s: int) -> Body:
    times = {"period": period_s, "periodUnit": "seconds", "grace": grace_s, "graceUnit": "seconds"}
    return CheckType.HEARTBEAT, {"name": name, "heartbeat": {**times, "pingToken": PING_TOKEN}}


def _assertion(source: str, comparison: str, target: str, **more: str) -> dict[str, str]:
    return {"source": source, "comparison": comparison, "target": target, **more}


_BUY: Final = """\
const { expect, test } = require('@playwright/test');

test('a visitor finds the shop open', async ({ page }) => {
  await page.goto('SHOP/');
  await expect(page).toHaveTitle('Corner shop');
  await expect(page.getByRole('heading')).toHaveText('Open');
});
"""
_LATE: Final = """\
const { expect, test } = require('@playwright/test');

test('a visitor finds the opening hours', async ({ page }) => {
  await page.goto('SHOP/');
  await expect(page.getByRole('heading')).toHaveText('Open until six', { timeout: 2000 });
});
"""
_ORDER: Final = """\
const { expect, test } = require('@playwright/test');

test('what is in stock can be ordered', async ({ request }) => {
  const stock = await (await request.get('SHOP/api/stock')).json();
  const [item] = stock.items.filter(({ count }) => count > 0);
  const order = await request.post('SHOP/api/orders', { data: { item: item.name } });
  expect(order.status()).toBe(201);
});
"""
_SETUP: Final = "request.headers['x-signature'] = `signed-${request.method}-${Date.now()}`;\n"
_TEARDOWN: Final = "console.log(`order ${JSON.parse(response.body).order.item} was taken`);\n"

ScriptBodies = tuple[tuple[CheckType, dict[str, Any]], ...]


def script_checks(shop: str) -> ScriptBodies:
    """The checks of a shop at this address, as the public API takes them."""
    return (
        (CheckType.API, _signed_order(shop)),
        (CheckType.BROWSER, _script("Shop in a browser", _BUY, shop)),
        (CheckType.BROWSER, _script("Opening hours in a browser (fails)", _LATE, shop)),
        (CheckType.MULTI_STEP, _script("Order what is in stock", _ORDER, shop)),
    )


def _signed_order(shop: str) -> dict[str, Any]:
    return {
        "name": "Order with a signature",
        "request": {
            "url": f"{shop}/api/orders",
            "method": "POST",
            "bodyType": "JSON",
            "body": '{"item": "tea"}',
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "201"}],
        },
        "localSetupScript": _SETUP,
        "localTearDownScript": _TEARDOWN,
    }


def _script(name: str, script: str, shop: str) -> dict[str, Any]:
    return {"name": name, "script": script.replace("SHOP", shop)}
