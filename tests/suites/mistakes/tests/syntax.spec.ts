import { test } from '@playwright/test';

test('syntax', async ({ page }) => {
  await page.goto('/';
});
