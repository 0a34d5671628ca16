import { test } from '@playwright/test';

test('waits', async ({ page }) => {
  test.setTimeout(3000);
  await page.click('#buy');
});
