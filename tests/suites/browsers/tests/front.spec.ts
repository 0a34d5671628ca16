import { expect, test } from '@playwright/test';

test('opens a page', async ({ page, browser }) => {
  expect(browser.browserType().name()).toBe('chromium');
  await page.setContent('<h1>Lamps</h1>');
  await expect(page.getByRole('heading')).toHaveText('Lamps');
});
