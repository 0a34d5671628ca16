const { test, expect } = require('@playwright/test');

const url = process.env.SHOP_URL;

test('a page', async ({ page }) => {
  await page.goto(url, { timeout: 0 });
  await expect(page.locator('body')).toHaveText('fine');
});

test('a request', async ({ request }) => {
  expect(await (await request.get(url, { timeout: 0 })).text()).toBe('fine');
});
