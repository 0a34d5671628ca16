const { test, expect } = require('@playwright/test');

const url = process.env.SHOP_URL;

test('the page, its fetch and its socket', async ({ page }) => {
  await page.goto(url, { timeout: 0 });
  await expect(page).toHaveTitle('data open');
});

test('a request', async ({ request }) => {
  expect(await (await request.get(`${url}data`, { timeout: 0 })).text()).toBe('data');
});
