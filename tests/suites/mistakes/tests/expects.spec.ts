import { test } from '@playwright/test';
import { greets } from '../front';

test('greets', async ({ page }) => {
  await page.setContent('<p>Bad tea</p>');
  await greets(page);
});
