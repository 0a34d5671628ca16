import { expect, test } from '@playwright/test'

test('the suite finds the shop', { tag: '@smoke' }, async ({ page }) => {
  await page.goto('/')
  await expect(page).toHaveTitle(/Shop/)
})
