import { test, expect } from '@playwright/test';
import { openFront } from '@shop/pages';

test('a package of the same repository is found', async ({ page }) => {
  await openFront(page);
  await expect(page.getByRole('heading')).toHaveText('Lamps');
});
