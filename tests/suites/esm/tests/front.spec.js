import { fileURLToPath } from 'node:url';
import { test, expect } from '@playwright/test';

const here = await Promise.resolve(fileURLToPath(import.meta.url));

test('a module of the new kind runs', async ({ page }) => {
  await page.setContent(`<h1>${here.split('/').pop()}</h1>`);
  await expect(page.getByRole('heading')).toHaveText('front.spec.js');
});
