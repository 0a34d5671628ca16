import { expect, test } from '@playwright/test'
import { HomePage } from './pages/home-page'

test('the shop has a home page', async ({ page }) => {
  const home = new HomePage(page)
  const response = await home.open()
  expect(response?.status()).toBeLessThan(400)
  await expect(page).toHaveTitle(/Shop/)
  await page.screenshot({ path: 'homepage.jpg' })
})
