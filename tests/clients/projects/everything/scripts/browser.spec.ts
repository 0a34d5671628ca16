import { expect, test } from '@playwright/test'
import { title } from './shop'

test('the shop opens', async ({ page }) => {
  await page.goto('/')
  await expect(page).toHaveTitle(title)
})
