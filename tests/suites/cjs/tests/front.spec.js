const { test, expect } = require('@playwright/test');

test('a module of the old kind runs', async ({ page }) => {
  await page.setContent(`<h1>${__filename.split('/').pop()}</h1>`);
  await expect(page.getByRole('heading')).toHaveText('front.spec.js');
});
