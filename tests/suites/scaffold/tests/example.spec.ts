import { test, expect } from '@playwright/test';

test('has a title', async ({ page }) => {
  await page.setContent('<title>Lamps</title>');
  await expect(page).toHaveTitle(/Lamps/);
});

test('starts a browser of its own', async ({ playwright }) => {
  const browser = await playwright.chromium.launch({ channel: 'chrome' });
  const page = await browser.newPage();
  await page.setContent('<h1>Basket</h1>');
  await expect(page.getByRole('heading')).toHaveText('Basket');
  await browser.close();
});
