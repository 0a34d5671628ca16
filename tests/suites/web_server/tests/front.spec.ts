import { test, expect } from '@playwright/test';

test('the front page is served', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading')).toHaveText('Lamps');
});

test('the global setup has run', () => {
  expect(process.env.GREETING).toBe('Good morning');
});

test('the API answers', async ({ request }) => {
  expect((await request.get('/')).status()).toBe(200);
});
