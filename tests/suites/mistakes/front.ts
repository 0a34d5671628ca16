import { expect, type Page } from '@playwright/test';

export async function greets(page: Page) {
  await expect(page.locator('p')).toHaveText('Good tea', { timeout: 100 });
}
