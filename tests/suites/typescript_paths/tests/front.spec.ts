import { test, expect } from '@playwright/test';
import { openFront, Shelf } from '@pages/front';

test('a path of tsconfig.json leads to its file', async ({ page }) => {
  await openFront(page, Shelf.Lamps);
  await expect(page.getByRole('heading')).toHaveText('Lamps');
});
