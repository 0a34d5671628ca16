import { test } from '@playwright/test';

test('waits', async ({ page }) => {
  test.setTimeout(Number(process.env.LIMIT_MS));
  await page.click('#buy');
});
