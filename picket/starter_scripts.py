"""The scripted starter checks: what an order looks like to a browser, to a script, to requests."""

from typing import Any, Final

from contract.checks import CheckType

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

Bodies = tuple[tuple[CheckType, dict[str, Any]], ...]


def script_checks(shop: str) -> Bodies:
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
